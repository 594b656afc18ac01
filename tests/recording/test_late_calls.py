"""Late reports: a call that was under way at a clear belongs to the round before, and what a
transcript tells of long afterwards is of none (place-6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.placement import (
    LatestClear,
    is_as_large,
    is_history,
    is_late,
)
from helmdash.operations import care
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.conversation_batch import ConversationBatch
from helmdash.operations.recording.conversation_rows import lock_by_name
from helmdash.operations.recording.judged.judging import judge
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Call, Conversation, HealthChange, Round
from tests.factories import NOW, make_capture
from tests.operations.care_support import Talk
from tests.recording.support import CRITICAL, HEALTHY, conversation, prompt, record


@pytest.fixture
def talk(project: ProjectInfo) -> Talk:
    """Three calls, the newest critical; a fourth is under way when it is cleared."""
    talk = Talk(project)
    talk.turns(HEALTHY, 2)
    talk.turn(CRITICAL)
    talk.advance()
    talk.clear()
    return talk


def rounds() -> list[tuple[int, int, int | None]]:
    return [
        (row.first_generation, row.latest_generation, row.peak_prompt_tokens)
        for row in Round.objects.order_by("number")
    ]


def before_the_clear(talk: Talk, tokens: int = CRITICAL + 500) -> Recorded:
    return talk.call(tokens, started_at=talk.at - timedelta(hours=1))


def test_late_before_the_first_call_of_the_new_round(talk: Talk) -> None:
    ended = Round.objects.get(number=1).ended_at
    assert ended is not None

    late = before_the_clear(talk)

    assert (late.round_number, late.generation) == (1, 4)
    row = conversation(talk.project)
    assert (row.level, row.known_level, row.prompt_tokens) == ("unknown", "", None)
    assert (row.round_number, row.generation, row.is_round_empty) == (2, 4, True)
    assert Round.objects.get(number=1).ended_at == ended
    first = talk.call(HEALTHY)
    assert (first.round_number, first.generation) == (2, 5)
    assert rounds() == [(1, 4, CRITICAL + 500), (5, 5, HEALTHY)]
    assert Round.objects.get(number=2).ended_at is None


def test_late_after_the_first_call_of_the_new_round(talk: Talk) -> None:
    ended = Round.objects.get(number=1).ended_at
    # Two were under way: the new round's first call takes the first number.
    Conversation.objects.update(late_until=5)
    first = talk.call(HEALTHY, round_number=2)
    late = before_the_clear(talk)

    assert (first.round_number, first.generation) == (2, 4)
    assert (late.round_number, late.generation) == (1, 5)
    row = conversation(talk.project)
    assert (row.level, row.prompt_tokens, row.model) == ("healthy", HEALTHY, "openai/gpt-4o")
    assert Round.objects.get(number=1).ended_at == ended
    assert rounds() == [(1, 5, CRITICAL + 500), (4, 4, HEALTHY)]
    assert talk.turns(HEALTHY, 2) == ["none", "none"]


def test_late_in_one_batch_with_the_first_call_of_the_new_round(talk: Talk) -> None:
    late, first = record(
        talk.project,
        prompt(CRITICAL, started_at=talk.at - timedelta(hours=1)),
        prompt(HEALTHY, started_at=talk.at + timedelta(hours=1)),
        now=talk.tick(),
    )

    assert (late.round_number, first.round_number) == (1, 2)
    assert rounds() == [(1, 4, CRITICAL), (5, 5, HEALTHY)]


def test_a_late_call_changes_no_level(talk: Talk) -> None:
    count = HealthChange.objects.count()

    before_the_clear(talk)

    assert HealthChange.objects.count() == count


def test_a_late_call_counts_among_the_failures_and_times(talk: Talk) -> None:
    talk.call(None, started_at=NOW - timedelta(days=1), http_status=429, finish_reason=None)

    row = conversation(talk.project)
    assert row.failures == 1
    assert row.started_at == NOW - timedelta(days=1)
    assert Round.objects.get(number=1).peak_prompt_tokens == CRITICAL


@pytest.mark.parametrize("sides", [0, 1])
@pytest.mark.parametrize("together", [True, False])
def test_a_first_round_begins_with_its_earliest_call_however_late_that_is_told(
    project: ProjectInfo, together: bool, sides: int
) -> None:
    first = NOW - timedelta(hours=5)
    calls = [
        *(
            prompt(HEALTHY, lane=Lane.SIDE, started_at=first - timedelta(hours=number + 1))
            for number in range(sides)
        ),
        prompt(HEALTHY, started_at=NOW - timedelta(hours=1)),
        prompt(HEALTHY, started_at=first),
        prompt(HEALTHY, started_at=NOW - timedelta(hours=3)),
    ]

    for batch in [calls] if together else [[call] for call in calls]:
        record(project, *batch)

    assert Round.objects.get().started_at == first


@pytest.mark.parametrize("together", [True, False])
def test_a_round_that_a_client_opened_begins_with_the_call_that_did(
    project: ProjectInfo, together: bool
) -> None:
    opened = NOW - timedelta(hours=1)
    calls = [
        prompt(HEALTHY, context="0", started_at=NOW - timedelta(hours=3)),
        prompt(HEALTHY, context="1", started_at=opened),
        prompt(HEALTHY, context="1", started_at=NOW - timedelta(hours=2)),
    ]

    for batch in [calls] if together else [[call] for call in calls]:
        record(project, *batch)

    before, after = Round.objects.order_by("number")
    assert (before.ended_at, after.started_at) == (opened, opened)


def test_a_call_that_tells_its_round_is_believed(talk: Talk) -> None:
    # By its clock it began before the clear.
    told = talk.call(HEALTHY, round_number=2, started_at=NOW - timedelta(days=1))

    assert told.round_number == 2


def test_a_round_that_is_still_to_come_is_the_open_one(talk: Talk) -> None:
    assert talk.call(HEALTHY, round_number=7).round_number == 2


def test_a_slow_clock_does_not_make_every_call_late(talk: Talk) -> None:
    before_the_clear(talk)

    told = before_the_clear(talk, HEALTHY)

    assert (told.round_number, told.generation) == (2, 5)


def test_no_call_is_late_where_none_was_under_way(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.call(CRITICAL)
    talk.clear()

    told = before_the_clear(talk, CRITICAL)

    assert told.round_number == 2


def test_a_compacted_first_call_opens_no_round_beside_the_clears(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.call(HEALTHY)
    talk.clear()
    batch = ConversationBatch(project.id)
    (row,) = lock_by_name(project.id, ["talk"])
    rules = budgets.table(project_id=project.id)
    item = judge(make_capture(), rules, caller="owner", now=talk.tick())

    number = batch.take(row, item, opened_by="compaction")
    batch.write()

    assert number == 2
    assert Round.objects.count() == 2


def test_a_second_clear_knows_its_own_late_calls(talk: Talk) -> None:
    before_the_clear(talk)
    talk.turn(HEALTHY)
    talk.advance()
    care.clear(actor=SHELL, project=talk.project, conversation="talk", now=talk.tick())

    late = before_the_clear(talk, HEALTHY)

    assert late.round_number == 2
    assert Call.objects.filter(round_number=2).count() == 2
    assert conversation(talk.project).round_number == 3


CLEARED = LatestClear(at=NOW, late_until=7)
EARLY, AFTER = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("over", "late"),
    [
        ({"began_in": 1}, True),
        ({"began_in": 2}, False),
        ({"began_in": 2, "started_at": EARLY}, False),  # the round is surer than a clock
        ({"started_at": EARLY}, True),
        ({"started_at": NOW}, False),
        ({"started_at": AFTER}, False),
        # More than were known to be under way: only what a call under way can have begun at.
        ({"started_at": EARLY, "generation": 8}, True),
        ({"started_at": NOW - timedelta(hours=1), "generation": 8}, False),
        ({"started_at": EARLY, "newest_at": EARLY, "generation": 8}, False),
        ({"started_at": EARLY, "cleared": None}, False),
        # It says no time, or one when it came in: its size tells.
        ({"started_at": None, "is_as_large": lambda: True}, True),
        ({"started_at": AFTER, "is_as_large": lambda: True}, True),
        ({"started_at": AFTER, "is_as_large": lambda: True, "generation": 8}, False),
        ({"started_at": AFTER, "is_as_large": lambda: True, "began_in": 2}, False),
        ({"started_at": None}, False),
    ],
)
def test_what_is_late(over: dict[str, object], late: bool) -> None:
    given = {
        "round_number": 2,
        "began_in": None,
        "started_at": AFTER,
        "generation": 7,
        "cleared": CLEARED,
    }

    assert is_late(**{**given, **over}) is late  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "now", "large"),
    [
        (100, 50, True),
        (100, 49, False),
        (100, 300, True),
        (None, 50, False),  # unknown: no
        (100, None, False),
    ],
)
def test_what_has_not_lost_its_history(before: int | None, now: int | None, large: bool) -> None:
    assert is_as_large(before, now) is large


# --- what a transcript tells of long afterwards


def test_earlier_calls_of_a_transcript_leave_the_conversation_as_it_stands(
    project: ProjectInfo,
) -> None:
    talk = Talk(project)
    talk.turns(HEALTHY, 3)
    before, peak = conversation(project), Round.objects.get().peak_prompt_tokens
    then = {"conversation": "talk", "started_at": NOW - timedelta(hours=5)}
    earlier = {**then, "routes": (CallRoute.TRANSCRIPT,)}
    Conversation.objects.update(attention=0)

    told = record(
        project,
        prompt(CRITICAL, **earlier),
        prompt(None, **earlier, http_status=529, finish_reason=None),
    )

    row = conversation(project)
    assert [(each.generation, each.round_number) for each in told] == [(4, None), (5, None)]
    assert (row.level, row.prompt_tokens, row.attention) == ("healthy", HEALTHY, 0)
    assert (row.generation, row.failures, row.latest_at) == (5, 1, before.latest_at)
    assert row.started_at == NOW - timedelta(hours=5)
    assert (HealthChange.objects.count(), Round.objects.get().peak_prompt_tokens) == (1, peak)
    assert talk.turns(HEALTHY, 2) == ["none", "none"]  # care goes by the newest
    assert Call.objects.get(generation=7).round_number == 1


@pytest.mark.parametrize(
    ("over", "is_past"),
    [
        ({}, True),
        ({"is_transcript": False}, False),  # the clock of a program may be anything
        ({"started_at": NOW - timedelta(minutes=10)}, False),  # it may have been under way
        ({"started_at": NOW - timedelta(minutes=11)}, True),
        ({"started_at": NOW + timedelta(hours=1)}, False),
    ],
)
def test_what_is_history(over: dict[str, object], is_past: bool) -> None:
    given = {"is_transcript": True, "started_at": NOW - timedelta(days=1)}

    assert is_history(**{**given, **over}, newest_at=NOW) is is_past  # type: ignore[arg-type]
