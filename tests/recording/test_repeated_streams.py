"""A stream that its client asks for again is another attempt at the same generation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.fingerprints import links_of
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.calls import find as find_call
from helmdash.queries.conversations import conversations
from helmdash.queries.conversations import timeline as timeline_query
from helmdash.queries.conversations.timeline import TimelineItem, timeline
from helmdash.records.call_names import find_generation
from helmdash.records.models import Call, CallName, Conversation, HealthChange, Round
from tests.factories import NOW, make_capture
from tests.recording.chats import TASK, nameless, turns
from tests.recording.support import (
    CAUTION,
    CRITICAL,
    HEALTHY,
    conversation,
    make_ruled_project,
    prompt,
    record,
)

pytestmark = pytest.mark.django_db

BROKEN: dict[str, Any] = {
    "status": "error", "error_code": "stream_broken", "usage": None, "finish_reason": None,
    "latency_ms": 1000,
}  # fmt: skip
LEFT = {**BROKEN, "status": "cancelled", "error_code": None}


def stream(seconds: float, *texts: str, is_retry: bool = False, **over: Any) -> Capture:
    """A call that asked for a stream with these turns, so long after the beginning of all."""
    links = replace(
        links_of(turns(*(texts or (TASK,))), reply=None, is_retry=is_retry), is_stream=True
    )
    started_at = NOW + timedelta(seconds=seconds)
    return make_capture(**{"links": links, "started_at": started_at, "latency_ms": 1000, **over})


def whole(seconds: float, *texts: str, **over: Any) -> Capture:
    """The same without a stream."""
    made = stream(seconds, *texts, **over)
    assert made.links is not None
    return replace(made, links=replace(made.links, is_stream=False))


def placed(project: ProjectInfo) -> list[tuple[int | None, int | None, int]]:
    """Generation, the one it was an attempt of, and attempt, as the calls came."""
    rows = Call.objects.filter(project_id=project.id).order_by("started_at", "id")
    return list(rows.values_list("generation", "attempt_of", "attempt"))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("end", [BROKEN, LEFT], ids=["broken", "left"])
def test_an_attempt_has_the_generation_of_the_one_before(
    project: ProjectInfo, end: dict[str, Any], together: bool
) -> None:
    ask = (TASK, "Done.", "And now?")
    calls = [
        stream(0), stream(10, *ask, **end, attempt=2), stream(20, *ask, **end),
        stream(30, *ask, id="last"), stream(40, *ask, "Yes.", "More."),
    ]  # fmt: skip
    batches: Sequence[Sequence[Capture]] = [calls] if together else [[each] for each in calls]

    answers = [answer for batch in batches for answer in record(project, *batch)]

    assert [answer.generation for answer in answers] == [1, 2, 2, 2, 3]
    assert placed(project) == [(1, None, 1), (None, 2, 2), (None, 2, 3), (2, None, 4), (3, None, 1)]
    row = conversation(project)
    assert (row.generation, row.earlier_attempts, row.failures) == (3, 2, 2)
    found = conversations.find(project_id=project.id, conversation_id="talk")
    assert found is not None
    assert (found.conversation.counts.calls, found.conversation.generation) == (5, 3)
    (place,) = find_generation(project.id, "talk", 2)
    assert Call.objects.get(pk=place.call_id).name == "last"
    assert CallName.objects.filter(conversation_id=row.pk).count() == 5


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("end", [BROKEN, LEFT], ids=["broken", "left"])
@pytest.mark.parametrize("is_named", [True, False])
def test_an_attempt_that_is_recorded_after_the_later_one_is_the_earlier(
    project: ProjectInfo, is_named: bool, end: dict[str, Any], together: bool
) -> None:
    ask = (TASK, "Done.", "And now?")
    own: dict[str, Any] = {} if is_named else {"conversation": None}
    calls = [
        stream(0, **own), stream(20, *ask, id="last", **own), stream(10, *ask, **end, **own),
        stream(40, *ask, "Yes.", "More.", **own),
    ]  # fmt: skip
    batches: Sequence[Sequence[Capture]] = [calls] if together else [[each] for each in calls]

    answers = [answer for batch in batches for answer in record(project, *batch)]

    assert [answer.generation for answer in answers] == [1, 2, 2, 3]
    assert placed(project) == [(1, None, 1), (None, 2, 1), (2, None, 2), (3, None, 1)]
    row = Conversation.objects.get()
    assert (row.generation, row.earlier_attempts, row.failures) == (3, 1, 1)
    assert row.level == Level.HEALTHY
    (place,) = find_generation(project.id, row.name, 2)
    assert Call.objects.get(pk=place.call_id).name == "last"


def test_an_attempt_without_a_stream_may_fail_too(project: ProjectInfo) -> None:
    """Claude Code asks whole for what broke off, and its library tries that again."""
    calls = [stream(0, **BROKEN), whole(10, **BROKEN), whole(20, is_retry=True), whole(30)]

    assert [record(project, each)[0].generation for each in calls] == [1, 1, 1, 2]
    assert placed(project)[:3] == [(None, 1, 1), (None, 1, 2), (1, None, 3)]


AGAIN = stream(10, id="again")
CASES: dict[str, tuple[Capture, Capture, list[int]]] = {
    "broken": (stream(0, **BROKEN), AGAIN, [1, 1]),
    "the client left": (stream(0, **LEFT), stream(0.5), [1, 1]),  # before we saw it
    "its library says so": (stream(0), stream(10, is_retry=True), [1, 1]),
    "answered": (stream(0), AGAIN, [1, 2]),
    "in parallel": (stream(0, **BROKEN), stream(0.5), [1, 2]),
    "in parallel, told in the other order": (stream(0.5), stream(0, **BROKEN), [1, 2]),
    "broken, and answered before": (stream(10), stream(20, **BROKEN), [1, 2]),
    "much later": (stream(0, **BROKEN), stream(700), [1, 2]),
    "other words": (stream(0, **BROKEN), stream(10, "Something else."), [1, 2]),
    "another model": (stream(0, **BROKEN), stream(10, model="other"), [1, 2]),
    "another caller": (stream(0, **BROKEN), stream(10, caller="eve"), [1, 2]),
    "the later one whole": (stream(0, **BROKEN), whole(10), [1, 1]),  # as Claude Code falls back
    "an empty stream": (stream(0, finish_reason=None, content=""), AGAIN, [1, 1]),
    "an empty reply": (stream(0, content=""), AGAIN, [1, 1]),
    "no stream": (whole(0, **BROKEN), AGAIN, [1, 2]),
    "too long": (
        stream(0, **{**BROKEN, "error_code": "context_length_exceeded"}, http_status=400),
        AGAIN, [1, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_attempt_is_a_further_generation(project: ProjectInfo, case: str) -> None:
    first, again, generations = CASES[case]
    found = [record(project, each)[0].generation for each in (first, again)]

    assert found == generations


@pytest.mark.parametrize("between", ["a call", "a clear"])
def test_it_is_no_attempt_once_the_conversation_went_on(project: ProjectInfo, between: str) -> None:
    record(project, stream(0), stream(5, "More.", **BROKEN))
    if between == "a call":
        record(project, stream(7, "Other."))
    else:
        care.clear(
            actor=SHELL, project=project, conversation="talk", now=NOW + timedelta(seconds=7)
        )

    (answer,) = record(project, stream(10, "More."))

    assert (answer.generation, answer.round_number) == ((4, 1) if between == "a call" else (3, 2))


def test_a_nameless_first_request_is_one_conversation_until_it_is_answered(
    project: ProjectInfo,
) -> None:
    def ask(seconds: float, **over: Any) -> Capture:
        made = nameless(TASK, reply=None if over else "Done.")
        assert made.links is not None
        at = NOW + timedelta(seconds=seconds)
        links = replace(made.links, is_stream=True)
        return replace(made, **{"links": links, "started_at": at, "latency_ms": 1000, **over})

    answers = [
        record(project, each)[0] for each in (ask(0, **BROKEN), ask(10, **BROKEN), ask(20), ask(30))
    ]

    assert [answer.generation for answer in answers] == [1, 1, 1, 1]
    names = [answer.conversation for answer in answers]
    assert names[0] == names[1] == names[2] != names[3]


def standing(project: ProjectInfo) -> dict[str, Any]:
    """All that is known by generation."""
    row = conversation(project)
    fields = (
        *("generation", "round_number", "level", "known_level", "prompt_tokens", "level_reason"),
        *("latest_cause", "cut_generation", "limit_tokens", "is_round_empty"),
    )
    return {
        "talk": {name: getattr(row, name) for name in fields},
        "changes": list(
            HealthChange.objects.filter(project_id=project.id)
            .order_by("generation")
            .values_list("generation", "from_level", "to_level")
        ),
        "rounds": list(
            Round.objects.filter(project_id=project.id)
            .order_by("number")
            .values_list("number", "first_generation", "latest_generation", "peak_prompt_tokens")
        ),
        "calls": list(
            Call.objects.filter(project_id=project.id, generation__isnull=False)
            .order_by("generation")
            .values_list("generation", "round_number", "level", "status", "started_at")
        ),
    }


@pytest.mark.parametrize("seed", range(6))
def test_all_that_goes_by_generations_is_as_if_earlier_attempts_had_not_been(
    project: ProjectInfo, seed: int
) -> None:
    """Random sequences with and without attempts that broke off, one by one and in batches."""
    choose, plain = random.Random(seed), make_ruled_project(slug="plain", name="Plain")
    told: list[Capture | None] = []
    kept: list[Capture | None] = []
    attempts = 0
    for number in range(8):
        if choose.random() < 0.15:
            told.append(None)
            kept.append(None)
        at, text = number * 100.0, f"Turn {number}."
        tokens = choose.choice([None, HEALTHY, CAUTION, CRITICAL])
        usage = None if tokens is None else {"prompt_tokens": tokens}
        for tried in range(choose.choice([0, 0, 1, 2])):
            attempts += 1
            end = choose.choice([BROKEN, LEFT])
            partly = {"usage": {"prompt_tokens": CAUTION}} if choose.random() < 0.2 else {}
            told.append(stream(at + tried * 10, text, **{**end, **partly}))
        ended = choose.choice([{}, {}, {}, BROKEN])
        last = stream(at + 50, text, **{**ended, "usage": usage})
        told.append(last)
        kept.append(last)

    for into, captures in ((project, told), (plain, kept)):
        batch: list[Capture] = []
        for number, each in enumerate(captures):
            if each is None:
                record(into, *batch)
                batch = []
                if Conversation.objects.filter(project_id=into.id, name="talk").exists():
                    following = captures[number + 1]
                    assert following is not None
                    assert following.started_at is not None
                    before = following.started_at - timedelta(seconds=1)
                    care.clear(actor=SHELL, project=into, conversation="talk", now=before)
                continue
            batch.append(each)
            if choose.random() < 0.5:
                record(into, *batch)
                batch = []
        record(into, *batch)

    with_attempts, without = standing(project), standing(plain)
    peaks = [found.pop("rounds") for found in (with_attempts, without)]
    assert with_attempts == without
    assert [row[:3] for row in peaks[0]] == [row[:3] for row in peaks[1]]
    assert (conversation(project).earlier_attempts or 0) == attempts


def test_a_correction_that_leads_back_to_the_level_before_is_no_change(
    project: ProjectInfo,
) -> None:
    record(project, prompt(HEALTHY, started_at=NOW - timedelta(seconds=9)))
    record(project, stream(0, **BROKEN))
    assert HealthChange.objects.count() == 2  # first, and unknown

    record(project, stream(10))

    assert list(HealthChange.objects.values_list("generation", "to_level")) == [(1, "healthy")]


@pytest.mark.parametrize("is_first", [True, False])
def test_what_another_door_tells_of_an_earlier_attempt_is_not_how_the_conversation_stands(
    project: ProjectInfo, is_first: bool
) -> None:
    gateway: dict[str, Any] = {"routes": (CallRoute.GATEWAY,)}
    record(project, stream(0, id="first", **gateway, **BROKEN))
    told = prompt(CRITICAL, id="first", routes=(CallRoute.OTLP_LOG,), started_at=NOW)
    again = stream(10, id="again", **gateway)

    record(project, *((told, again) if is_first else (again, told)))

    row = conversation(project)
    assert (row.level, row.prompt_tokens) == ("healthy", 20_000)
    assert Call.objects.get(name="first").prompt_tokens == CRITICAL
    assert list(HealthChange.objects.values_list("generation", "to_level")) == [(1, "healthy")]


def test_the_timeline_shows_each_attempt_once_on_pages_of_any_size(
    project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(
        project,
        *(stream(each, "a", **BROKEN) for each in (0, 10)), stream(20, "a"),
        stream(30, "b"),
        stream(40, "c", **BROKEN), stream(50, "c"),
    )  # fmt: skip
    seen: list[TimelineItem] = []
    for limit in (1, 2, 50):
        seen.clear()
        cursor = None
        while True:
            page = timeline(
                project_id=project.id, conversation_id="talk", cursor=cursor, limit=limit
            )
            assert page is not None
            seen += page.items
            cursor = page.next
            if cursor is None:
                break
        assert [item.generation for item in seen] == [1, 1, 1, 2, 3, 3]
        assert len({item.call_id for item in seen}) == 6
    shown = find_call(project_id=project.id, call_id=str(seen[0].call_id))
    assert shown is not None
    assert shown.call.generation == 1

    monkeypatch.setattr(timeline_query, "MOST_EARLIER", 1)
    page = timeline(project_id=project.id, conversation_id="talk", limit=2)
    assert page is not None
    assert [item.call_id for item in page.items] == [each.call_id for each in seen[1:4]]
