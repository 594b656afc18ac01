"""One call that comes by several doors is one row, whichever door is first."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.conversations import conversations
from helmdash.records.models import Call, CallName, CallPayload, Conversation
from tests.factories import NOW, make_capture
from tests.recording.chats import TASK, nameless
from tests.recording.support import CRITICAL, HEALTHY, record

GATEWAY, LOG, SPAN, TRANSCRIPT = (
    CallRoute.GATEWAY,
    CallRoute.OTLP_LOG,
    CallRoute.OTLP_SPAN,
    CallRoute.TRANSCRIPT,
)


def _claude(route: CallRoute, **over: Any) -> Capture:
    """The same turn of Claude Code as a door tells it."""
    own: dict[CallRoute, dict[str, Any]] = {
        GATEWAY: {
            "id": "call_1",
            "also_known": ("anthropic:req_1", "anthropic:msg_1"),
            "latency_ms": 900,
        },
        LOG: {"latency_ms": 920},
        SPAN: {"ttft_ms": 300, "latency_ms": 950},
        TRANSCRIPT: {"finish_reason": "end_turn", "client_version": "2.1.197"},
    }
    counts = {GATEWAY: 50, LOG: 50, SPAN: 50, TRANSCRIPT: 1}  # written before the reply's end
    given: dict[str, Any] = {
        "id": "anthropic:req_1",
        "routes": (route,),
        "conversation": "s-1",
        "client_name": "claude-code",
        "model": "claude-opus-4-8",
        "usage": {"prompt_tokens": HEALTHY, "completion_tokens": counts[route]},
        "finish_reason": None,
        "started_at": NOW,
    }
    return make_capture(**{**given, **own[route], **over})


def _codex(route: CallRoute, **over: Any) -> Capture:
    """The same turn of Codex: its log records have no id of their own."""
    names = {GATEWAY: "call_2", LOG: "codex:t-1:log", TRANSCRIPT: "codex:resp_1"}
    given: dict[str, Any] = {
        "id": names[route],
        "also_known": ("codex:resp_1",) if route is GATEWAY else (),
        "routes": (route,),
        "conversation": "t-1",
        "client_name": "codex",
        "model": "gpt-5.4",
        "usage": {"prompt_tokens": HEALTHY, "completion_tokens": 50},
        "started_at": NOW,
    }
    return make_capture(**{**given, **over})


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("order", [*permutations((GATEWAY, LOG, SPAN, TRANSCRIPT))][::5])
def test_a_turn_of_claude_code_is_one_row(
    project: ProjectInfo, order: tuple[CallRoute, ...], together: bool
) -> None:
    told = [_claude(route) for route in order]
    groups = [told] if together else [[each] for each in told]

    answers = [answer for group in groups for answer in record(project, *group)]

    assert [answer.duplicate for answer in answers] == [False, True, True, True]
    call = Call.objects.get()
    assert call.routes == "gateway otlp_log otlp_span transcript"
    assert (call.prompt_tokens, call.completion_tokens) == (HEALTHY, 50)
    assert (call.latency_ms, call.ttft_ms) == (900, 300)
    assert (call.finish_reason_raw, call.client_version) == ("end_turn", "2.1.197")
    for name in ("anthropic:req_1", "call_1", "anthropic:msg_1"):
        found = calls.find(project_id=project.id, call_id=name)
        assert found is not None
        assert found.call.id == call.name == told[0].id
    assert Conversation.objects.get().generation == 1
    again = [answer for each in told for answer in record(project, each)]
    assert all(answer.duplicate for answer in again)
    assert Call.objects.count() == 1


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("order", [*permutations((GATEWAY, LOG, TRANSCRIPT))])
def test_a_turn_of_codex_is_one_row(
    project: ProjectInfo, order: tuple[CallRoute, ...], together: bool
) -> None:
    told = [_codex(route) for route in order]

    for group in [told] if together else [[each] for each in told]:
        record(project, *group)

    call = Call.objects.get()
    assert call.routes == "gateway otlp_log transcript"
    assert calls.find(project_id=project.id, call_id="codex:t-1:log") is not None


@pytest.mark.parametrize("order", [*permutations((GATEWAY, TRANSCRIPT))])
@pytest.mark.parametrize("client", ["opencode", "pi"])
def test_an_agent_that_names_its_session_is_one_row_by_gateway_and_transcript(
    project: ProjectInfo, client: str, order: tuple[CallRoute, ...]
) -> None:
    for route in order:
        told = _codex(route, id=f"{client}:{route}", also_known=(), client_name=client)
        record(project, told)

    assert Call.objects.get().routes == "gateway transcript"
    assert Conversation.objects.get().generation == 1


@pytest.mark.parametrize(("door", "written"), [(LOG, 0), (TRANSCRIPT, None)])
def test_a_zero_that_a_transcript_writes_for_what_nobody_told_stays_unknown(
    project: ProjectInfo, door: CallRoute, written: int | None
) -> None:
    """pi and opencode write 0 tokens to a cache where the provider reports none."""
    usage = {"prompt_tokens": HEALTHY, "completion_tokens": 50}
    record(project, _codex(GATEWAY, usage=usage))
    zeros = {"prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    record(project, _codex(door, usage={**usage, **zeros}))

    call = Call.objects.get()
    assert (call.cached_tokens, call.cache_write_tokens) == (written, written)


def test_failures_of_codex_are_one_row_each(project: ProjectInfo) -> None:
    failed = {"usage": None, "finish_reason": None, "status": "error"}
    for number in range(2):
        at = NOW + timedelta(minutes=9 * number)
        record(
            project,
            _codex(GATEWAY, id=f"call_{number}", also_known=(), started_at=at, **failed),
            _codex(LOG, id=f"codex:{number}", http_status=400, started_at=at, **failed),
        )

    found = list(Call.objects.order_by("id").values_list("name", "routes", "http_status"))
    assert found == [(f"call_{number}", "gateway otlp_log", 200) for number in range(2)]


def test_equal_turns_stay_as_many_as_they_were(project: ProjectInfo) -> None:
    for number in range(3):
        record(project, _codex(GATEWAY, id=f"call_{number}", also_known=()))
    for number in range(3):
        record(project, _codex(LOG, id=f"codex:t-1:{number}"))

    found = list(Call.objects.order_by("id").values_list("name", "routes"))
    assert found == [(f"call_{number}", "gateway otlp_log") for number in range(3)]


@pytest.mark.parametrize(
    "other",
    [
        {"conversation": "t-2"},
        {"usage": {"prompt_tokens": HEALTHY, "completion_tokens": 51}},
        {"started_at": NOW + timedelta(minutes=11)},
        {"client_name": "somebody"},
        {"routes": (CallRoute.API,)},
    ],
    ids=["conversation", "counts", "time", "program", "a report"],
)
def test_what_is_not_the_same_call_stays_apart(project: ProjectInfo, other: dict[str, Any]) -> None:
    record(project, _codex(GATEWAY), _codex(LOG, **other))

    assert sorted(Call.objects.values_list("routes", flat=True))[-1] != "gateway otlp_log"
    assert Call.objects.count() == 2


def test_a_report_of_a_known_id_changes_nothing(project: ProjectInfo) -> None:
    record(project, _claude(TRANSCRIPT))

    record(project, _claude(TRANSCRIPT, routes=(CallRoute.API,), ttft_ms=7))

    call = Call.objects.get()
    assert (call.routes, call.ttft_ms) == ("transcript", None)


def test_counts_that_only_another_door_knows_give_the_level(project: ProjectInfo) -> None:
    model = "openai/gpt-4o"
    record(project, _claude(GATEWAY, usage=None, model=model))
    assert Conversation.objects.get().level == "unknown"

    usage = {"prompt_tokens": CRITICAL, "completion_tokens": 5}
    record(project, _claude(LOG, usage=usage, model=model))

    call, conversation = Call.objects.get(), Conversation.objects.get()
    assert (call.level, conversation.level) == ("critical", "critical")
    assert (call.prompt_tokens, conversation.prompt_tokens) == (CRITICAL, CRITICAL)
    kept = calls.find(project_id=project.id, call_id="call_1")
    assert kept is not None
    assert kept.usage_raw == usage


def test_all_names_of_a_call_go_with_its_conversation(project: ProjectInfo) -> None:
    record(project, _claude(GATEWAY))
    assert CallName.objects.count() == 4

    erase_conversation(actor=SHELL, project=project, conversation="s-1", now=NOW)

    assert not CallName.objects.exists()


def _gemini(route: CallRoute, *, number: int = 1, **over: Any) -> Capture:
    """The same call of Gemini CLI: its requests name no session, its logs tell the reply's id."""
    said = [part for turn in range(number) for part in (f"{TASK} {turn}", f"Done {turn}.")]
    given: dict[str, Any] = {
        "id": f"{route.value}:{number}",
        "routes": (route,),
        "client_name": "gemini-cli",
        "model": "gemini-2.5-pro",
        "usage": {"prompt_tokens": HEALTHY + number, "completion_tokens": 50},
        "reply_id": f"reply-{number}",
        "latency_ms": 900,
        "started_at": NOW + timedelta(minutes=number),
        **over,
    }
    if route is GATEWAY:
        return nameless(*said[:-1], reply=said[-1], **given)
    return make_capture(conversation="session-1", **given)


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("late", [(), (1,), (2,), (1, 2), (1, 2, 3)])
def test_a_session_of_gemini_cli_is_one_conversation_whichever_door_is_first(
    project: ProjectInfo, late: tuple[int, ...], together: bool
) -> None:
    """late: the calls that the gateway records after their telemetry."""
    told: list[Capture] = []
    for number in (1, 2, 3, 4):
        doors = (LOG, GATEWAY) if number in late else (GATEWAY, LOG)
        told += [_gemini(door, number=number) for door in doors]

    for group in [told] if together else [[each] for each in told]:
        record(project, *group)

    conversation = Conversation.objects.get()
    assert (conversation.generation, conversation.failures) == (4, 0)
    assert set(Call.objects.values_list("routes", flat=True)) == {"gateway otlp_log"}


def test_telemetry_that_runs_ahead_is_joined_in_its_order(project: ProjectInfo) -> None:
    for number in (1, 2, 3):
        record(project, _gemini(LOG, number=number))
    for number in (1, 2, 3, 4):
        record(project, _gemini(GATEWAY, number=number))

    assert Conversation.objects.get().generation == 4
    assert Call.objects.count() == 4


@pytest.mark.parametrize("order", [(GATEWAY, LOG), (LOG, GATEWAY)])
@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_a_failed_call_of_gemini_cli_is_one_row(
    project: ProjectInfo, order: tuple[CallRoute, ...], status: str
) -> None:
    failed: dict[str, Any] = {"usage": None, "reply_id": None, "status": status, "http_status": 429}
    models = {GATEWAY: "google/gemini-2.5-pro", LOG: "gemini-2.5-pro"}
    for door in order:
        record(project, _gemini(door, **failed, model=models[door]))
    # Another one, seconds later, and one that went well.
    later = NOW + timedelta(minutes=1, seconds=9)
    record(project, _gemini(LOG, **failed, id="log:2", started_at=later))
    record(project, _gemini(LOG, id="log:3"))

    stored = Call.objects.order_by("id").values_list("routes", "status")
    first = ("gateway otlp_log", status)
    assert list(stored) == [first, ("otlp_log", status), ("otlp_log", "success")]
    assert Conversation.objects.get().generation == 3


@pytest.mark.parametrize("order", [*permutations((GATEWAY, LOG, TRANSCRIPT))])
def test_a_call_of_qwen_code_is_one_row(project: ProjectInfo, order: tuple[CallRoute, ...]) -> None:
    for door in order:
        record(project, _gemini(door, client_name="qwen-code", reply_id=None))

    assert Call.objects.get().routes == "gateway otlp_log transcript"
    assert Conversation.objects.get().generation == 1


def test_without_a_replys_id_the_figures_and_the_end_tell_it(project: ProjectInfo) -> None:
    record(project, _gemini(GATEWAY))
    record(project, _gemini(LOG, reply_id=None), _gemini(LOG, number=2, reply_id=None))

    assert Call.objects.count() == 2


KIND = "s-1:agent:builtin:Explore"


def _agent(route: CallRoute, number: int, agent: str = "a1", **over: Any) -> Capture:
    """A call of a sub-agent: its log record knows the kind alone."""
    own = KIND if route is LOG else f"s-1:{agent}"
    given = {"id": f"anthropic:req_{number}", "conversation": own, "parent": "s-1"}
    usage = {"prompt_tokens": HEALTHY + number, "completion_tokens": 50}
    at = NOW + timedelta(minutes=number)
    return _claude(route, **{**given, "usage": usage, "started_at": at, **over})


def _talks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, call in (
        Call.objects.filter(generation__isnull=False)
        .order_by("conversation_id", "generation")
        .values_list("conversation__name", "name")
    ):
        found.setdefault(name, []).append(call[-1])
    return found


@pytest.mark.parametrize("door", [SPAN, TRANSCRIPT])
def test_a_sub_agent_known_by_its_kind_gets_the_name_of_its_id(
    project: ProjectInfo, door: CallRoute
) -> None:
    record(project, *(_agent(LOG, number) for number in (1, 2, 3)))
    assert _talks() == {KIND: ["1", "2", "3"]}

    record(project, _agent(door, 2))
    record(project, _agent(LOG, 4))

    assert _talks() == {"s-1:a1": ["1", "2", "3", "4"]}
    row = Conversation.objects.get()
    assert (row.parent, row.generation, row.prompt_tokens) == ("s-1", 4, HEALTHY + 4)
    # What it was called leads there.
    found = conversations.find(project_id=project.id, conversation_id=KIND)
    assert found is not None
    assert found.conversation.id == "s-1:a1"
    erase_conversation(actor=SHELL, project=project, conversation=KIND, now=NOW)
    assert not Conversation.objects.exists()
    assert not CallName.objects.exists()


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
def test_sub_agents_of_one_kind_are_told_apart_once_their_ids_are_known(
    project: ProjectInfo, together: bool
) -> None:
    logs = [_agent(LOG, number) for number in (1, 2, 3, 4)]
    spans = [_agent(SPAN, 1), _agent(SPAN, 2, "b2"), _agent(SPAN, 3), _agent(SPAN, 4, "b2")]
    for group in [logs, spans] if together else [[each] for each in logs + spans]:
        record(project, *group)

    assert _talks() == {"s-1:a1": ["1", "3"], "s-1:b2": ["2", "4"]}
    standing = Conversation.objects.order_by("name").values_list("generation", "prompt_tokens")
    assert list(standing) == [(2, HEALTHY + 3), (2, HEALTHY + 4)]
    assert set(Call.objects.values_list("routes", flat=True)) == {"otlp_log otlp_span"}
    usages = {usage["completion_tokens"] for usage in _usages()}
    assert usages == {50}


def test_a_kind_leads_to_the_agent_that_was_known_before(project: ProjectInfo) -> None:
    record(project, _agent(SPAN, 1))
    record(project, _agent(LOG, 1))
    record(project, _agent(LOG, 2))
    record(project, _agent(SPAN, 3, "b2"), _agent(LOG, 3))

    assert _talks() == {"s-1:a1": ["1", "2"], "s-1:b2": ["3"]}


def _usages() -> list[dict[str, Any]]:
    return [each for each in CallPayload.objects.values_list("usage_raw", flat=True) if each]
