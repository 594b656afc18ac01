"""Where a recorded call lands: its generation, its round, its level, and what those change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import CapturedTrim
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations import conversations
from helmdash.records.models import Budget, Call, Conversation, HealthChange, Round
from tests.factories import NOW, make_capture
from tests.recording.support import (
    CAUTION,
    CRITICAL,
    HEALTHY,
    conversation,
    make_ruled_project,
    prompt,
    record,
)


def test_generations_count_up_over_single_calls_and_batches(project: ProjectInfo) -> None:
    first = record(project, make_capture())
    batch = record(project, make_capture(), make_capture(conversation="other"), make_capture())
    last = record(project, make_capture())

    placed = [(r.conversation, r.round_number, r.generation) for r in (*first, *batch, *last)]
    assert placed == [
        ("talk", 1, 1),
        ("talk", 1, 2),
        ("other", 1, 1),
        ("talk", 1, 3),
        ("talk", 1, 4),
    ]


def test_answers_come_in_the_order_of_the_batch(project: ProjectInfo) -> None:
    names = [f"id-{number}" for number in (5, 3, 9, 1)]

    answers = record(project, *(make_capture(id=name) for name in names))

    assert [answer.id for answer in answers] == names
    stored = Call.objects.order_by("id").values_list("name", "generation")
    assert list(stored) == [("id-5", 1), ("id-3", 2), ("id-9", 3), ("id-1", 4)]


def test_an_empty_batch_is_answered_with_nothing(project: ProjectInfo) -> None:
    assert record(project) == ()


def test_a_call_without_a_conversation_has_no_place(project: ProjectInfo) -> None:
    (answer,) = record(project, make_capture(conversation=None))

    assert (answer.conversation, answer.round_number, answer.generation) == (None, None, None)
    assert answer.health.level is Level.HEALTHY
    assert not Conversation.objects.exists()


def test_a_call_without_an_id_gets_one_of_its_own(project: ProjectInfo) -> None:
    answers = record(project, make_capture(), make_capture())

    assert answers[0].id.startswith("call_")
    assert answers[0].id != answers[1].id


def test_the_same_names_in_two_projects_are_two_conversations(project: ProjectInfo) -> None:
    stranger = make_ruled_project(slug="other", name="Other")
    record(project, make_capture(id="one"))

    (answer,) = record(stranger, make_capture(id="one"))

    assert (answer.duplicate, answer.generation) == (False, 1)
    assert Call.objects.filter(name="one").count() == 2


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (100_000, Level.HEALTHY),  # on the line is still below it
        (100_001, Level.CAUTION),
        (115_200, Level.CAUTION),  # floor(0.9 x 128,000)
        (115_201, Level.CRITICAL),
        (None, Level.UNKNOWN),
    ],
)
def test_the_lines_are_strict(project: ProjectInfo, tokens: int | None, level: Level) -> None:
    (answer,) = record(project, prompt(tokens))

    assert answer.health.level is level
    assert conversation(project).level == level.value


@pytest.mark.parametrize(
    "usage",
    [
        None,  # left out
        {},  # nothing said
        {"prompt_tokens": None},
        {"prompt_tokens": 0, "completion_tokens": 0},  # all zero is "not counted"
        {"prompt_tokens": -1},
        {"prompt_tokens": "many"},
        {"prompt_tokens": True},
        {"prompt_tokens": 1.5},
        {"completion_tokens": 12},  # only the answer was counted
        {"prompt_tokens": 2**80},  # no such prompt
    ],
)
def test_usage_that_says_nothing_is_unknown_and_never_zero(
    project: ProjectInfo, usage: dict[str, object] | None
) -> None:
    (answer,) = record(project, make_capture(usage=usage))

    assert answer.health.level is Level.UNKNOWN
    assert answer.health.reason is HealthReason.USAGE_UNAVAILABLE
    assert answer.health.prompt_tokens is None
    assert Call.objects.get().prompt_tokens is None
    assert Round.objects.get().peak_prompt_tokens is None


def test_a_model_without_a_budget_is_unknown_but_keeps_its_tokens(project: ProjectInfo) -> None:
    (answer,) = record(project, prompt(5_000, model="nobody/knows"))

    assert answer.health.level is Level.UNKNOWN
    assert answer.health.reason is HealthReason.MODEL_LIMIT_UNAVAILABLE
    assert answer.health.prompt_tokens == 5_000
    assert conversation(project).limit_tokens is None


def test_anthropic_counters_are_added_up(project: ProjectInfo) -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 40_000,
        "cache_read_input_tokens": 80_000,
        "output_tokens": 300,
    }

    (answer,) = record(project, make_capture(model="anthropic/claude-sonnet-4", usage=usage))

    assert answer.health.prompt_tokens == 120_010
    assert answer.health.level is Level.CAUTION
    row = Call.objects.get()
    assert (row.cached_tokens, row.cache_write_tokens) == (80_000, 40_000)


def test_a_change_of_level_is_a_row(project: ProjectInfo) -> None:
    for tokens in (HEALTHY, HEALTHY, CAUTION, CRITICAL, None, CRITICAL, HEALTHY):
        record(project, prompt(tokens))

    changes = HealthChange.objects.order_by("generation")
    assert [(c.generation, c.from_level, c.to_level) for c in changes] == [
        (1, "", "healthy"),
        (3, "healthy", "caution"),
        (4, "caution", "critical"),
        (5, "critical", "unknown"),
        (6, "unknown", "critical"),
        (7, "critical", "healthy"),
    ]


def test_one_batch_changes_levels_as_single_calls_do(project: ProjectInfo) -> None:
    record(project, *(prompt(tokens) for tokens in (HEALTHY, CAUTION, CAUTION, CRITICAL)))

    changes = HealthChange.objects.order_by("generation").values_list("generation", "to_level")
    assert list(changes) == [(1, "healthy"), (2, "caution"), (4, "critical")]


def test_unknown_keeps_the_last_known_level_beside_it(project: ProjectInfo) -> None:
    record(project, prompt(CRITICAL))
    record(project, prompt(None))

    row = conversation(project)
    assert (row.level, row.known_level, row.prompt_tokens) == ("unknown", "critical", None)


def test_a_conversation_stands_where_its_newest_call_put_it(project: ProjectInfo) -> None:
    record(project, prompt(CRITICAL))
    record(project, prompt(5_000, model="anthropic/claude-sonnet-4"))

    found = conversations.find(project_id=project.id, conversation_id="talk")

    assert found is not None
    assert found.conversation.model == "anthropic/claude-sonnet-4"
    assert found.conversation.health.level is Level.HEALTHY
    assert found.conversation.health.limit_tokens == 200_000
    assert [point.prompt_tokens for point in found.curve] == [CRITICAL, 5_000]


def test_a_round_keeps_its_peak(project: ProjectInfo) -> None:
    record(project, prompt(None))
    after_unknown = Round.objects.get().peak_prompt_tokens
    record(project, prompt(30_000), prompt(90_000), prompt(60_000))
    record(project, prompt(40_000), prompt(None))

    row = Round.objects.get()
    assert after_unknown is None
    assert (row.first_generation, row.latest_generation) == (1, 6)
    assert row.peak_prompt_tokens == 90_000


def test_failures_and_cuts_are_counted(project: ProjectInfo) -> None:
    cut = CapturedTrim(before_bytes=9_000, after_bytes=4_000, dropped=("entry.extra",))
    uncut = CapturedTrim(before_bytes=4_000, after_bytes=4_000)

    record(
        project,
        make_capture(trim=cut),
        make_capture(trim=uncut),
        make_capture(http_status=429, finish_reason=None, usage=None),
    )

    row = conversation(project)
    assert (row.trims, row.failures) == (1, 1)


def test_a_late_report_of_an_old_call_does_not_move_the_conversation_back_in_time(
    project: ProjectInfo,
) -> None:
    record(project, make_capture(started_at=NOW))
    record(project, make_capture(started_at=NOW - timedelta(hours=3)))

    row = conversation(project)
    assert row.latest_at == NOW
    assert row.started_at == NOW - timedelta(hours=3)


def test_a_budget_of_the_project_beats_the_global_one(project: ProjectInfo) -> None:
    Budget.objects.create(
        project_id=project.id,
        key="openai/gpt-4o",
        input_tokens=8_000,
        output_tokens=500,
        tier="C",
        context_length=20_000,
    )

    (answer,) = record(project, prompt(19_000))

    assert answer.health.level is Level.CRITICAL
    assert answer.health.limit_tokens == 20_000
