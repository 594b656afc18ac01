"""A call that another one lies in is taken back when that one comes: as if it had never been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.forms.models import model_to_dict

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.care.clearing import clear
from helmdash.operations.evidence import trialling
from helmdash.operations.recording.spans.lent_places import place_calls
from helmdash.operations.recording.told_before import LentPlace
from helmdash.operations.triage import Word, say
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import conversations
from helmdash.records.models import (
    Call,
    CallName,
    CallPayload,
    Conversation,
    HealthChange,
    Round,
    TrialCall,
    UncountedCalls,
)
from helmdash.records.rollups.call_facts import facts_of, load_changes
from tests.factories import NOW, make_suggestion
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, at_once, make_ruled_project, record

OUTER, INNER = "otel:t:1", "otel:t:2"


def span(
    name: str, talk: str | None = "talk", tokens: int | None = HEALTHY, **over: Any
) -> Capture:
    given: dict[str, Any] = {
        "id": name,
        "model": "openai/gpt-4o",
        "conversation": talk,
        "usage": None if tokens is None else {"prompt_tokens": tokens, "completion_tokens": 9},
        "started_at": NOW - timedelta(seconds=60 - int(name[-1])),
        "routes": (CallRoute.OTLP_SPAN,),
    }
    return Capture(**{**given, **over})


def outer(talk: str | None = "talk", tokens: int = CRITICAL, **over: Any) -> Capture:
    return span(OUTER, talk, tokens, also_known=("codex:resp_1",), inside=("otel:t:0",), **over)


def inner(talk: str | None = None, tokens: int = CAUTION, **over: Any) -> Capture:
    return span(INNER, talk, tokens, also_known=("codex:resp_1",), inside=(OUTER,), **over)


def state(project: ProjectInfo) -> dict[str, Any]:
    """All that is stored, without keys of rows."""
    of = {"project_id": project.id}
    names: dict[Any, str] = dict(Conversation.objects.filter(**of).values_list("id", "name"))
    hidden = {"id", "project", "conversation", "trace", "recorded_at", "rules"}

    def rows(model: Any, *order: str) -> list[dict[str, Any]]:
        found = model.objects.filter(**of).order_by(*order)
        return [
            {k: v for k, v in model_to_dict(row).items() if k not in hidden}
            | {"of": names.get(getattr(row, "conversation_id", None) or 0, "")}
            for row in found
        ]

    return {
        "calls": rows(Call, "name"),
        "talks": rows(Conversation, "name"),
        "rounds": rows(Round, "conversation__name", "number"),
        "changes": rows(HealthChange, "conversation__name", "generation"),
        "numbers": sorted(
            (name, names.get(talk), number)
            for name, talk, number in CallName.objects.filter(
                **of, name__in=Call.objects.filter(**of).values("name")
            ).values_list("name", "conversation_id", "generation")
        ),
        "payloads": CallPayload.objects.filter(**of).count(),
        "levels": conversations.counters(project_id=project.id),
    }


def counted(project: ProjectInfo) -> Counter[object]:
    """The calls that rollups know of."""
    found: Counter[object] = Counter()
    for text in UncountedCalls.objects.filter(project_id=project.id).values_list(
        "changes", flat=True
    ):
        for old, new in load_changes(text):
            found.update([new] if new is not None else [])
            found.subtract([old] if old is not None else [])
    return +found


A, B, LIKE_A = span("otel:a:1"), span("otel:b:3", tokens=CAUTION), span("otel:c:5")
FAILED = span("otel:f:4", tokens=None, status="error", http_status=500)
UNTOLD = span("otel:u:1", tokens=None)
STORIES: dict[str, tuple[list[Capture], Capture, list[Capture]]] = {
    "the only call": ([outer()], inner(), [inner("talk")]),
    "the newest": ([A, outer()], inner(), [A, inner("talk")]),
    "in between": ([A, outer(), B, FAILED], inner(), [A, B, FAILED, inner("talk")]),
    "the first of several": ([outer(), B], inner(), [B, inner("talk")]),
    "unlike its neighbours": ([A, outer(), LIKE_A], inner(), [A, LIKE_A, inner("talk")]),
    "elsewhere": ([A, outer(), B], inner("other"), [A, B, inner("other")]),
    "alone, elsewhere": ([outer()], inner("other"), [inner("other")]),
    "without conversation": ([outer(None)], inner(), [inner()]),
    "inside found it": ([outer(None), A], inner("talk"), [A, inner("talk")]),
    "a failure": (
        [A, outer(status="error", http_status=500, usage=None)],
        inner("other"),
        [A, inner("other")],
    ),
    "a failure in between": (
        [A, outer(status="error", http_status=500, usage=None), B],
        inner("other"),
        [A, B, inner("other")],
    ),
    "the only known level": (
        [UNTOLD, outer(), span("otel:u:3", tokens=None)],
        inner("other"),
        [UNTOLD, span("otel:u:3", tokens=None), inner("other")],
    ),
    "beside": ([A, outer(purpose="title")], inner("talk"), [A, inner("talk")]),
    "nothing else but beside": ([outer(purpose="title")], inner("o"), [inner("o")]),
}  # fmt: skip


def test_a_call_that_gets_its_session_later_is_as_if_it_had_had_it(db: None) -> None:
    told, straight = make_ruled_project(), make_ruled_project(slug="straight")
    nameless = [
        span("otel:d:6", None, CRITICAL, inside=("otel:d:7",), latency_ms=9, client_name="shop"),
        span("otel:d:5", None, None, status="error", http_status=500, error_message="Too much."),
    ]
    places = [LentPlace(each.id or "", "talk", "above") for each in nameless]
    for capture in (A, *nameless):
        record(told, capture)
    for capture in (
        A,
        *(replace(each, conversation="talk", parent="above") for each in nameless[::-1]),
    ):
        record(straight, capture)

    assert place_calls(project=told, lent=[*places, places[0]], now=NOW) == 2

    assert state(told) == state(straight)
    assert counted(told) == Counter(facts_of(Call.objects.filter(project_id=told.id)))
    assert place_calls(project=told, lent=places, now=NOW) == 0
    (again,) = record(told, span("otel:d:7", "elsewhere"))
    assert (again.duplicate, again.conversation) == (True, "talk")


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_call_that_changes_while_it_gets_its_session_stays_as_it_is(
    db: None, is_gone: bool
) -> None:
    project = make_ruled_project()
    record(project, span("otel:d:5", None))
    left = Call.objects.filter(project_id=project.id)
    waiting = [True]

    def meanwhile(execute: Callable[..., Any], sql: str, *told: Any) -> Any:
        if CallPayload._meta.db_table in sql and waiting:
            waiting.clear()
            left.delete() if is_gone else left.update(routes="otlp_span gateway")
        return execute(sql, *told)

    with connection.execute_wrapper(meanwhile):
        lent = [LentPlace("otel:d:5", "talk", None)]
        assert place_calls(project=project, lent=lent, now=NOW) == 0

    kept: list[Any] = [] if is_gone else [("otlp_span gateway", None)]
    assert list(left.values_list("routes", "conversation")) == kept
    assert not Conversation.objects.filter(project_id=project.id).exists()


@pytest.mark.parametrize("name", STORIES)
def test_what_is_left_is_as_if_it_had_never_come(db: None, name: str) -> None:
    before, late, instead = STORIES[name]
    told, straight = make_ruled_project(), make_ruled_project(slug="straight")
    for capture in before:
        record(told, capture)
    for capture in instead:
        record(straight, capture)

    answer = record(told, late)[0]

    assert not answer.duplicate
    expected = state(straight)
    assert state(told) == expected
    assert counted(told) == Counter(facts_of(Call.objects.filter(project_id=told.id)))
    # Each id, of what lay around it too, leads to the call inside, and nothing comes back.
    for again in (outer(), late, span("otel:t:0", "talk", CRITICAL), *before):
        assert record(told, again)[0].duplicate
    assert state(told) == expected


@pytest.mark.parametrize("together", [True, False])
def test_several_calls_in_one_have_its_conversation(db: None, together: bool) -> None:
    project = make_ruled_project()
    record(project, A, outer())
    both = [inner(), span("otel:t:5", None, CAUTION, inside=(OUTER,))]

    for batch in [both] if together else [[each] for each in both]:
        record(project, *batch)

    calls = Call.objects.filter(conversation__name="talk").order_by("generation")
    assert [*calls.values_list("name", flat=True)] == [A.id, INNER, "otel:t:5"]


@pytest.mark.parametrize("together", [True, False])
def test_a_call_with_the_conversation_of_another_is_judged_by_the_trial_of_that(
    db: None, together: bool
) -> None:
    project = make_ruled_project()
    trialling.begin(
        actor=SHELL,
        project_id=project.id,
        suggestion_id=make_suggestion(project=project).pk,
        share=0.9,
        now=NOW - timedelta(days=1),
    )
    batches = [[outer(), inner()]] if together else [[outer()], [inner()]]

    for batch in batches:
        record(project, *batch)

    call = Call.objects.get()
    told = TrialCall.objects.filter(call_number=call.pk).values_list("unit", flat=True)
    straight = record(project, span("otel:s:9", "talk", CAUTION))
    assert (
        [*told]
        == [
            *TrialCall.objects.exclude(call_number=call.pk)
            .filter(call_number=Call.objects.get(name=straight[0].id).pk)
            .values_list("unit", flat=True)
        ]
        != []
    )
    assert call.limit_tokens == straight[0].health.limit_tokens
    assert call.optimal_max_tokens == straight[0].health.optimal_max_tokens


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_one_transaction_the_innermost_counts(db: None, order: tuple[int, ...]) -> None:
    project = make_ruled_project()
    middle = span("otel:t:3", None, inside=(OUTER,))
    three = [outer(), middle, span("otel:t:4", None, inside=(middle.id or "", OUTER))]

    answers = record(project, *(three[at] for at in order))

    call = Call.objects.get()
    assert (call.name, call.generation) == ("otel:t:4", 1)
    assert call.conversation is not None
    assert call.conversation.name == "talk"  # of the outermost, as no other names one
    assert [answers[order.index(at)].duplicate for at in range(3)] == [True, True, False]
    assert record(project, *three)[0].duplicate
    assert Call.objects.count() == 1


def test_an_outer_call_that_comes_later_to_another_process_is_none(db: None) -> None:
    project = make_ruled_project()
    for talk in ("talk", None):
        record(project, inner(talk))
        assert record(project, outer(talk))[0].duplicate
        Call.objects.get().delete()
        CallName.objects.all().delete()


@pytest.mark.parametrize("why", ["late", "seen by another door"])
def test_what_people_or_another_door_have_seen_stays(db: None, why: str) -> None:
    project = make_ruled_project()
    record(project, outer())
    later: datetime = NOW
    if why == "late":
        later += timedelta(seconds=31)
    else:
        record(project, span("codex:resp_1", routes=(CallRoute.GATEWAY,)))
        assert Call.objects.get().routes == "gateway otlp_span"

    record(project, inner("other"), now=later)

    assert Call.objects.count() == 2
    assert record(project, outer(), inner("other"))[1].duplicate


def test_a_round_that_a_clear_has_opened_is_empty_again(db: None) -> None:
    project = make_ruled_project()
    record(project, A)
    clear(actor=SHELL, project=project, conversation="talk", now=A.started_at or NOW)
    record(project, outer(started_at=NOW))
    record(project, inner("other"))

    talk = Conversation.objects.get(name="talk")
    assert (talk.generation, talk.round_number, talk.is_round_empty) == (1, 2, True)
    record(project, B)
    rounds = Round.objects.filter(conversation=talk).order_by("number")
    assert [(each.first_generation, each.latest_generation) for each in rounds] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("cleared", ["before it", "after it"])
@pytest.mark.parametrize(
    "first", [span("otel:f:1", tokens=CRITICAL), replace(FAILED, id="otel:f:1")]
)
def test_nothing_from_before_a_clear_comes_back(db: None, first: Capture, cleared: str) -> None:
    told, straight = make_ruled_project(), make_ruled_project(slug="straight")
    at = NOW - timedelta(seconds=20)
    seconds = 10 if cleared == "before it" else 50
    around = outer(tokens=HEALTHY, started_at=NOW - timedelta(seconds=seconds))
    later = span("otel:g:5", tokens=None, started_at=NOW)
    for project in (told, straight):
        record(project, replace(first, started_at=NOW - timedelta(seconds=60)))
        if project is told and cleared == "after it":
            record(project, around, now=at - timedelta(milliseconds=1))
        clear(actor=SHELL, project=project, conversation="talk", now=at)
        if project is told and cleared == "before it":
            record(project, around)

    for late in (inner("other", started_at=NOW), later):
        record(told, late)
        record(straight, late)

        for rows in (found := state(told)), (expected := state(straight)):
            for row in rows["rounds"]:
                row["restart"] = None  # sealed
        assert found == expected


def test_what_was_seen_to_stays_so(db: None) -> None:
    project = make_ruled_project()
    failed: dict[str, Any] = {"tokens": None, "status": "error", "http_status": 500}
    record(project, A, outer(), *(span(f"otel:f:{at}", **failed) for at in (3, 4, 5)))
    say(actor=SHELL, project=project, conversation="talk", word=Word.DONE, now=NOW)

    record(project, inner("other"))

    talk = Conversation.objects.get(name="talk")
    assert (talk.attention, talk.recent_failures) == (0, 0)


def test_a_call_of_a_trial_leaves_it_when_it_is_taken_back(db: None) -> None:
    project = make_ruled_project()
    record(project, outer(trial=f"7:today:{'0' * 16}"))
    assert TrialCall.objects.count() == 1

    record(project, inner("talk"))

    assert not TrialCall.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_processes_take_it_back_once() -> None:
    project = make_ruled_project()
    record(project, A, outer())

    at_once(
        [
            lambda: record(project, inner("talk")),
            lambda: record(project, span("otel:t:6", inside=(OUTER,))),
            lambda: record(project, B),
        ]
    )

    talk = Conversation.objects.get(name="talk")
    numbers = Call.objects.filter(conversation=talk).order_by("generation")
    assert [*numbers.values_list("generation", flat=True)] == [*range(1, talk.generation + 1)]
    assert not Call.objects.filter(name=OUTER).exists()
    assert Call.objects.count() == 4
    assert counted(project) == Counter(facts_of(Call.objects.all()))
