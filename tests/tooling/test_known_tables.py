"""A table of budgets that a test finds ready is the one that its rows make."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, BudgetAlias, LearnedWindow
from tests.factories import make_project


def edit_row(project: ProjectInfo) -> None:
    Budget.objects.filter(key__startswith="openai/").update(input_tokens=1234)


def edit_alias(project: ProjectInfo) -> None:
    BudgetAlias.objects.update(target="elsewhere/")


def confirm_window(project: ProjectInfo) -> None:
    Budget.objects.exclude(context_length=None).first().save()  # type: ignore[union-attr]


def learn_window(project: ProjectInfo) -> None:
    LearnedWindow.objects.create(
        project_id=project.id,
        model_key="some/model",
        source="refusal",
        tokens=4096,
        seen_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def add_own_row(project: ProjectInfo) -> None:
    Budget.objects.create(
        key="own/row", tier="A", input_tokens=1, output_tokens=1, project_id=project.id
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change", [edit_row, edit_alias, confirm_window, learn_window, add_own_row]
)
def test_a_known_table_is_that_of_the_rows_there_are(
    change: Callable[[ProjectInfo], None],
) -> None:
    project = make_project()
    before = budgets._read_table(project.id)
    assert budgets._read_table(project.id) is before

    change(project)
    budgets._read_table(None)

    assert budgets._read_table(project.id) is not before
