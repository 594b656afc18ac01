"""Edits of budgets taken back: each as an edit of its own, and all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.budgets.editing import (
    BudgetConflict,
    BudgetProblem,
    change_budget,
    delete_budget,
    restore_budget,
)
from helmdash.queries.budgets.budget_edits import changes_of
from helmdash.records.models import Budget
from helmdash.records.models.budgets import REVERTED_REASON


class NoSuchEdit(Exception):
    """The project sees no edit with this number."""


def revert_edits(*, actor: Actor, project_id: int, numbers: Sequence[int]) -> int:
    """Take back edits, the newest first; gives how many.

    What was changed is set back, what was added is deleted, what was deleted comes back. Only the
    columns of the edit are touched: what others did to the rest of the row since stays. So does the
    row's evidence, which tells of each edit in turn, unless nothing else was changed.

    Raises NoSuchEdit, Forbidden, BudgetConflict where a column was edited again since, and
    BudgetProblems where the row cannot be as it was any more. Nothing is stored then.
    """
    with transaction.atomic():
        visible = Q(project__isnull=True) | Q(project_id=project_id)
        records = list(
            Budget.history.filter(visible, history_id__in=set(numbers)).order_by("-history_id")
        )
        if not records or len(records) != len(set(numbers)):
            raise NoSuchEdit("there is no such edit of a budget")
        for record in records:
            require(actor, Right.CHANGE_BUDGETS, project_id=record.project_id)
            _revert(actor, project_id, record)
    return len(records)


def _revert(actor: Actor, project_id: int, record: Any) -> None:
    why = f"{REVERTED_REASON} the edit of {record.history_date:%Y-%m-%d %H:%M:%S} UTC"
    match record.history_type:
        case "+":
            row = Budget.objects.filter(pk=record.id).first()
            _require_unchanged(record, row)
            delete_budget(actor=actor, budget_id=record.id, project_id=project_id, why=why)
        case "-":
            restore_budget(actor=actor, row=record.instance, why=why)
        case _:
            before = record.prev_record
            row = Budget.objects.select_for_update().filter(pk=record.id).first()
            if before is None or row is None:
                raise _conflict(record, "is not there any more: bring it back first")
            every = changes_of(before, record)
            # Each accepted suggestion and what-if adds its own words to those before it.
            changes = [each for each in every if each.field != "evidence"] or every
            again = [each.field for each in changes if getattr(row, each.field) != each.after]
            if again:
                raise _conflict(record, f"has another {', '.join(again)} since: look at it again")
            change_budget(
                actor=actor,
                budget_id=record.id,
                project_id=project_id,
                changes={each.field: each.before for each in changes},
                why=why,
            )


def _require_unchanged(record: Any, row: Budget | None) -> None:
    if row is None:
        raise _conflict(record, "is not there any more")
    if changes_of(record, row):
        raise _conflict(record, "was edited since it was added: revert those edits first")


def _conflict(record: Any, said: str) -> BudgetConflict:
    name = record.key or "the fallback"
    return BudgetConflict((BudgetProblem("", f"The row {name} {said}."),))
