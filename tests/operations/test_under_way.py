"""What goes on now: who fills up, who stands still, and who is quiet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.operations.budgets.editing import change_budget
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.conversations.care import needs_attention
from helmdash.queries.conversations.under_way import under_way
from helmdash.records.models import Conversation
from tests.factories import NOW, make_capture
from tests.recording.support import CRITICAL, make_ruled_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def talk(project: ProjectInfo, name: str, *tokens: int, ago: int, **over: Any) -> None:
    """Calls a minute apart, the newest so many minutes ago."""
    newest = NOW - timedelta(minutes=ago)
    ages = reversed(range(len(tokens)))
    record(
        project,
        *(
            make_capture(
                conversation=name,
                usage={"prompt_tokens": each},
                started_at=newest - timedelta(minutes=age),
                **over,
            )
            for each, age in zip(tokens, ages, strict=True)
        ),
    )


def test_who_fills_up_who_stands_still_and_who_is_quiet(
    project: ProjectInfo, django_assert_num_queries: Callable[[int], Any]
) -> None:
    tools = {"finish_reason": "tool_calls"}
    talk(project, "near", 80_000, 90_000, 99_000, ago=1)
    talk(project, "nearer", 90_000, 96_000, 99_500, ago=2)
    talk(project, "far", 1_000, 1_100, 1_200, ago=1)
    talk(project, "working", 1_000, ago=5, **tools)
    talk(project, "stalled", 1_000, 1_000, ago=12, **tools)
    talk(project, "answered", 80_000, 90_000, 99_000, ago=45)
    talk(project, "yesterday", CRITICAL, ago=25 * 60, **tools)

    with django_assert_num_queries(3):
        found = under_way(project_id=project.id, now=NOW, limit=10)
    (quiet,) = needs_attention(project_id=project.id, now=NOW)

    told = [
        (each.id, each.projection and (each.projection.level.value, each.projection.generations))
        for each in found
    ]
    assert sorted(told[:2]) == [("near", ("caution", 1)), ("nearer", ("caution", 1))]
    assert told[2:] == [("stalled", None)]
    assert (quiet.id, quiet.is_quiet) == ("yesterday", True)


def test_who_fills_up_is_told_by_todays_budget(project: ProjectInfo) -> None:
    """The calls that come are judged by it."""
    load_budgets(update=True)  # so that the row is a shipped one
    talk(project, "talk", 80_000, 85_000, 90_000, ago=1)
    model = Conversation.objects.get().model
    budget_id = budgets.table(project_id=project.id).lookup(model).budget_id
    assert budget_id is not None

    def told() -> list[tuple[str, int, int]]:
        found = under_way(project_id=project.id, now=NOW, limit=10)
        ahead = [each.projection for each in found if each.projection]
        return [(each.level.value, each.line, each.generations) for each in ahead]

    before = told()
    lines = {"optimal_max_tokens": 93_000, "critical_max_tokens": 98_000}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=lines)

    assert before == [("caution", 100_000, 3)]
    assert told() == [("caution", 93_000, 1)]
    # Judged by the window of a server, which only the calls knew.
    Conversation.objects.update(limit_source=LimitSource.SERVER.value)
    assert told() == before
    # An operator's word comes before it.
    lines = {"context_length": 120_000, "optimal_max_tokens": 94_000}
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=lines)
    assert told() == [("caution", 94_000, 1)]
