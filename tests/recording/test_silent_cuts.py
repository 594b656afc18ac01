"""Calls whose prompt a provider has probably cut: how they are stored, placed and told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.operations.recording import truncation
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.conversations import conversations
from helmdash.records.models import Call, CallPayload, Conversation
from tests.factories import make_capture, make_key
from tests.recording.support import record

MODEL = "openai/gpt-4o"
_CUT = 4_098  # half of a window of 8,192 and two


@pytest.fixture(autouse=True)
def _as_a_new_process() -> Iterator[None]:
    truncation.forget()
    yield
    truncation.forget()


def _call(number: int, *, tokens: int | None = None, **over: Any) -> Capture:
    """The call of that number of a conversation that grows by 2,500 bytes a turn."""
    size = 24_000 + 2_500 * number
    given: dict[str, Any] = {
        "model": MODEL,
        "usage": {"prompt_tokens": tokens or size // 4, "completion_tokens": 50},
        "sent": SentSizes(bytes=size, messages=2 + 2 * number),
    }
    return make_capture(**{**given, **over})


def _levels(answers: tuple[Recorded, ...]) -> list[str]:
    return [answer.health.level.value for answer in answers]


def test_a_cut_call_is_unknown_with_its_reason_and_keeps_its_figures(project: ProjectInfo) -> None:
    record(project, *(_call(number) for number in range(3)))
    (answer,) = record(project, _call(3, tokens=_CUT, id="cut"))

    assert answer.health.level is Level.UNKNOWN
    assert answer.health.reason is HealthReason.SUSPECTED_CUT
    assert answer.health.prompt_tokens == _CUT
    found = calls.find(project_id=project.id, call_id="cut")
    assert found is not None
    assert found.call.health == answer.health
    assert found.suspected_cut is not None
    assert found.suspected_cut.rule == "half_window"
    assert found.suspected_cut.reported_tokens == _CUT


COMPACTED = {"input_tokens": _CUT, "iterations": [{"type": "compaction", "input_tokens": 9_000}]}


@pytest.mark.parametrize("over", [{"sent_is_prompt": False}, {"usage": COMPACTED}])
def test_a_provider_that_says_what_it_left_out_has_cut_nothing_silently(
    project: ProjectInfo, over: dict[str, Any]
) -> None:
    record(project, *(_call(number) for number in range(3)))
    edited = {"context_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 9}]}

    (answer,) = record(project, _call(3, tokens=_CUT, id="c", metadata=edited, **over))

    assert (answer.health.level, answer.health.prompt_tokens) == (Level.HEALTHY, _CUT)
    found = calls.find(project_id=project.id, call_id="c")
    assert found is not None
    assert [(each.kind, each.cleared_tokens) for each in found.context_edits] == [
        ("clear_tool_uses_20250919", 9)
    ]


def test_its_conversation_is_unknown_too_beside_the_level_it_had(project: ProjectInfo) -> None:
    record(project, *(_call(number) for number in range(3)), _call(3, tokens=_CUT))

    told = conversations.find(project_id=project.id, conversation_id="talk")
    assert told is not None
    assert told.conversation.health.reason is HealthReason.SUSPECTED_CUT
    assert told.conversation.known_level is Level.HEALTHY


@pytest.mark.parametrize("size", [1, 4, 12])
def test_batches_of_any_size_give_the_same_verdicts(project: ProjectInfo, size: int) -> None:
    talk = [_call(number, tokens=_CUT if number >= 5 else None) for number in range(12)]

    found: list[str] = []
    for start in range(0, len(talk), size):
        found += _levels(record(project, *talk[start : start + size]))

    assert found == ["healthy"] * 5 + ["unknown"] * 7


def test_a_repeat_of_a_cut_call_gets_the_first_answer(project: ProjectInfo) -> None:
    record(project, *(_call(number) for number in range(3)))
    (first,) = record(project, _call(3, tokens=_CUT, id="cut"))
    (again,) = record(project, _call(3, id="cut"))

    assert again.duplicate
    assert again.health == first.health


def test_a_model_is_learned_from_its_stored_calls_by_a_new_process(project: ProjectInfo) -> None:
    # Dense text, 2.5 bytes a token, in a dozen conversations.
    for number in range(12):
        usage = {"prompt_tokens": 10_000 + 40 * number}
        record(
            project,
            _call(
                number,
                conversation=f"talk-{number}",
                usage=usage,
                sent=SentSizes(bytes=25_000 + 100 * number, messages=4),
            ),
        )
    truncation.forget()

    half = {"prompt_tokens": 4_555}
    (answer,) = record(project, _call(0, conversation="new", usage=half))

    assert answer.health.reason is HealthReason.SUSPECTED_CUT
    stored = CallPayload.objects.get(call__conversation__name="new").cut
    assert stored is not None
    assert stored["rule"] == "out_of_band"


def test_images_in_messages_are_seen_though_nobody_counted_them(project: ProjectInfo) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}
    talk: list[dict[str, object]] = [{"role": "user", "content": "What is this? " * 200}]
    (first,) = record(
        project, make_capture(model=MODEL, usage={"prompt_tokens": 700}, messages=tuple(talk))
    )
    talk.append({"role": "user", "content": [{"type": "text", "text": "And this?"}, picture]})
    (second,) = record(
        project, make_capture(model=MODEL, usage={"prompt_tokens": 1_500}, messages=tuple(talk))
    )

    assert _levels((first, second)) == ["healthy", "healthy"]


def test_failed_calls_and_calls_without_a_count_are_not_judged(project: ProjectInfo) -> None:
    record(project, *(_call(number) for number in range(3)))
    failed, uncounted = record(
        project,
        _call(3, tokens=_CUT, http_status=500, finish_reason=None),
        _call(3, usage=None),
    )

    assert failed.health.reason is None
    assert uncounted.health.reason is HealthReason.USAGE_UNAVAILABLE


def test_the_trace_of_a_conversation_stays_small(project: ProjectInfo) -> None:
    for number in range(30):
        record(project, _call(number, tokens=_CUT if number > 20 else None))

    trace = Conversation.objects.get().trace
    assert len(json.dumps(trace)) <= 200
    assert Call.objects.filter(level_reason="suspected_cut").count() == 9


@pytest.mark.usefixtures("project")
def test_post_calls_tells_the_level_and_the_call_its_evidence(client: Client) -> None:
    headers = {"Authorization": f"Bearer {make_key(name='cuts')}"}
    told: list[dict[str, Any]] = []
    for number in range(5):
        size = 24_000 + 2_500 * number
        body = {
            "id": f"c{number}",
            "conversation": "talk",
            "model": MODEL,
            "usage": {"prompt_tokens": _CUT if number == 4 else size // 4},
            "finish_reason": "stop",
            "sent": {"bytes": size, "messages": 2 + 2 * number},
        }
        answer = client.post(
            "/api/v1/calls", body, content_type="application/json", headers=headers
        )
        told.append(answer.json()["health"])

    assert [health["level"] for health in told] == ["healthy"] * 4 + ["unknown"]
    assert told[-1]["reason"] == "suspected_cut"
    cut = client.get("/api/v1/calls/c4", headers=headers).json()["suspected_cut"]
    assert cut["version"] == "cuts-2"
    assert cut["rule"] == "half_window"
    assert cut["expected_tokens"] == pytest.approx(8_500, rel=0.01)
    assert cut["reported_tokens"] == _CUT
    assert "half of a window of 8,192" in cut["detail"]
    assert client.get("/api/v1/calls/c3", headers=headers).json()["suspected_cut"] is None
