"""Side calls are shown with their conversation and never measure it; sub-agents name a parent."""

from __future__ import annotations

from dataclasses import fields

import orjson
import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.fingerprints import ChatTurn, links_of
from helmdash.operations.care.clearing import clear
from helmdash.operations.recorder.capture_json import dump_capture, load_capture
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import conversations
from helmdash.queries.conversations.timeline import timeline
from helmdash.records.models import Conversation, HealthChange, Round
from helmdash.records.statements.steps import find_newest_call
from tests.factories import NOW, make_capture
from tests.recording.support import CRITICAL, HEALTHY, conversation, prompt, record

# What a main call says of its conversation, and a side call must leave as it is.
MEASURED = (
    "round_number generation level level_reason known_level severity prompt_tokens limit_tokens "
    "model model_key client_name client_window is_round_empty cleared_at late_until trace"
).split()


def test_a_side_call_leaves_its_conversation_as_it_is(project: ProjectInfo) -> None:
    record(project, prompt(HEALTHY, id="m1"), prompt(HEALTHY, id="m2"))
    before = Conversation.objects.values(*MEASURED).get(name="talk")

    (said,) = record(
        project, prompt(CRITICAL, id="s1", lane=Lane.SIDE, model="anthropic/claude", purpose="chat")
    )

    assert (said.conversation, said.round_number, said.generation) == ("talk", None, None)
    assert Conversation.objects.values(*MEASURED).get(name="talk") == before
    assert HealthChange.objects.count() == Round.objects.count() == 1
    newest = find_newest_call(conversation(project))
    assert newest is not None
    assert newest.generation == 2
    found = conversations.find(project_id=project.id, conversation_id="talk")
    assert found is not None
    assert (found.conversation.counts.calls, found.conversation.counts.side_calls) == (3, 1)
    assert [point.call_id for point in found.curve] == ["m1", "m2"]
    told = timeline(project_id=project.id, conversation_id="talk")
    assert told is not None
    assert [item.call_id for item in told.items] == ["m1", "m2"]
    for lane, ids in ((Lane.MAIN, ["m2", "m1"]), (Lane.SIDE, ["s1"])):
        only = CallFilters(conversation="talk", lane=lane.value)
        assert [
            call.id for call in call_listing.page(project_id=project.id, filters=only).items
        ] == ids
    filters = CallFilters(conversation="talk")
    shown = call_listing.page(project_id=project.id, filters=filters).items
    assert {call.id: call.lane for call in shown} == {
        "m1": Lane.MAIN,
        "m2": Lane.MAIN,
        "s1": Lane.SIDE,
    }


def test_the_next_main_call_goes_on_where_the_last_one_was(project: ProjectInfo) -> None:
    batch = record(
        project,
        prompt(HEALTHY, id="m1"),
        prompt(CRITICAL, id="s1", purpose="compaction"),
        prompt(HEALTHY, id="m2"),
    )
    again = record(project, prompt(HEALTHY, id="s1"), prompt(HEALTHY, id="m3"))

    assert [said.generation for said in (*batch, *again)] == [1, None, 2, None, 3]
    assert again[0].duplicate
    assert conversation(project).level == Level.HEALTHY.value


def test_a_conversation_of_side_calls_only_says_so(project: ProjectInfo) -> None:
    record(project, prompt(HEALTHY, id="s1", purpose="title"))
    record(project, prompt(HEALTHY, id="s1"))  # a repeat takes nothing back

    only = conversations.standing(project_id=project.id, conversation_id="talk")
    assert only is not None
    assert (only.generation, only.health.level) == (0, Level.UNKNOWN)
    assert only.health.reason is HealthReason.NO_MAIN_CALL

    (first,) = record(project, prompt(HEALTHY, id="m1"))
    assert (first.round_number, first.generation) == (1, 1)
    then = conversations.standing(project_id=project.id, conversation_id="talk")
    assert then is not None
    assert (then.health.level, then.counts.calls) == (Level.HEALTHY, 2)


def test_a_failed_side_call_is_a_failure_of_its_conversation(project: ProjectInfo) -> None:
    record(project, make_capture(id="m1"))
    record(project, make_capture(id="s1", lane=Lane.SIDE, http_status=503, error_code="overloaded"))

    assert conversation(project).failures == 1


@pytest.mark.parametrize(
    ("told", "purpose", "lane"),
    [
        (None, "chat", Lane.MAIN),
        (None, "plan", Lane.MAIN),
        (None, "title", Lane.SIDE),
        (None, "classify", Lane.SIDE),
        (Lane.MAIN, "memory", Lane.MAIN),  # what is told comes first
        (Lane.SIDE, "chat", Lane.SIDE),
    ],
)
def test_the_lane_is_as_told_else_by_a_purpose_that_leaves_no_doubt(
    told: Lane | None, purpose: str, lane: Lane
) -> None:
    assert make_capture(lane=told, purpose=purpose).effective_lane is lane


def test_a_nameless_side_call_belongs_nowhere_and_leaves_no_trace(project: ProjectInfo) -> None:
    links = links_of([ChatTurn("user", "word " * 60)], reply=None, is_retry=False)

    (said,) = record(project, make_capture(conversation=None, links=links, purpose="title"))

    assert (said.conversation, Conversation.objects.count()) == (None, 0)


def test_the_first_parent_stays_also_where_it_comes_late(project: ProjectInfo) -> None:
    record(project, make_capture(conversation="talk:a1", purpose="title"))
    for parent in ("talk", "other", None):
        record(project, make_capture(conversation="talk:a1", parent=parent))

    told = conversations.standing(project_id=project.id, conversation_id="talk:a1")
    assert told is not None
    assert told.parent == "talk"


FULL = Composition(
    system=900,
    tools=4_000,
    user=0,
    assistant=70,
    tool_results=30_000,
    images=12,
    other=3,
    results_by_tool={"read": 20_000, "bash": 9_000},
)


def test_what_fills_the_prompt_is_told_again(project: ProjectInfo) -> None:
    given = make_capture(id="c1", composition=FULL, routes=(CallRoute.API,), lane=Lane.SIDE)
    _, line = dump_capture(given)

    record(project, given, make_capture(id="c2"), make_capture(id="c3", composition=Composition()))

    assert load_capture(orjson.loads(line)) == given
    found = {
        call.id: call
        for call in call_listing.page(project_id=project.id, filters=CallFilters()).items
    }
    assert (found["c1"].composition, found["c1"].routes) == (FULL, ("api",))
    # What nobody told is unknown, and never zero.
    assert (found["c2"].composition, found["c2"].routes) == (None, ())
    assert found["c3"].composition is None
    assert len(FULL.counts) == len(fields(FULL)) - 1


def test_a_clear_after_side_calls_alone_is_followed_by_a_first_call(project: ProjectInfo) -> None:
    record(project, make_capture(conversation="talk", lane=Lane.SIDE))
    clear(actor=SHELL, project=project, conversation="talk", now=NOW)

    (answer,) = record(project, make_capture(conversation="talk"))

    assert (answer.generation, answer.round_number) == (1, 2)
