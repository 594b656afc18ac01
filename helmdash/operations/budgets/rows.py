"""Several rows at once: all edits are stored, each with its own history, or none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from helmdash.core.access.permissions import Actor, Right, may, require
from helmdash.operations.budgets.editing import (
    BudgetProblem,
    BudgetProblems,
    EditedMeanwhile,
    NoSuchBudget,
    change_budget,
    copy_budget,
)
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEdit:
    """New values for columns of a row; seen_at: when it was edited last, as it was seen."""

    budget_id: int
    changes: Mapping[str, object]
    seen_at: datetime | None = None


class RowProblems(Exception):
    """Some rows cannot be stored so: none was. `errors` has what is wrong, by the row's number."""

    def __init__(self, errors: Mapping[int, tuple[BudgetProblem, ...]]) -> None:
        super().__init__("; ".join(each.message for found in errors.values() for each in found))
        self.errors = errors


def edit_rows(
    *, actor: Actor, project_id: int, edits: Sequence[RowEdit], why: str = ""
) -> tuple[int, ...]:
    """Edit rows that the project sees; gives the numbers of the edits in the history.

    A row of every project that the actor may not edit is left as it is: the project gets one of its
    own with the same key. Rows to which nothing would change are passed over.

    Raises Forbidden, and RowProblems, after which nothing is stored.
    """
    require(actor, Right.CHANGE_BUDGETS, project_id=project_id)
    problems: dict[int, tuple[BudgetProblem, ...]] = {}
    stored: list[int] = []
    with transaction.atomic():
        # In one order, so that two who edit the same rows do not wait for each other.
        for edit in sorted(edits, key=lambda each: each.budget_id):
            try:
                number = _edit(actor, project_id, edit, why)
            except BudgetProblems as error:
                problems[edit.budget_id] = error.errors
            except NoSuchBudget as error:
                problems[edit.budget_id] = (BudgetProblem("", str(error)),)
            else:
                if number is not None:
                    stored.append(number)
        if problems:
            raise RowProblems(problems)
        history = Budget.history.filter(id__in=stored).order_by("history_id")
        newest = dict(history.values_list("id", "history_id"))
    return tuple(newest[number] for number in stored)


def _edit(actor: Actor, project_id: int, edit: RowEdit, why: str) -> int | None:
    """The number of the row that was stored; None: nothing would change."""
    row = budgets.find(project_id=project_id, budget_id=edit.budget_id)
    if row is None:
        raise NoSuchBudget(f"there is no budget {edit.budget_id}")
    stands = row.budget.stored()
    changes = {name: value for name, value in edit.changes.items() if stands[name] != value}
    if not changes:
        return None
    if row.project is None and not may(actor, Right.CHANGE_BUDGETS, project_id=None):
        if edit.seen_at is not None and row.updated_at != edit.seen_at:
            raise EditedMeanwhile
        by = budgets.table(project_id=project_id).window_by(row.id)
        if by is None:  # deleted since it was found
            raise NoSuchBudget(f"there is no budget {edit.budget_id}")
        base = replace(row.budget, window_by=by)
        return copy_budget(
            actor=actor, base=base, changes=changes, project_id=project_id, why=why
        ).id
    return change_budget(
        actor=actor,
        budget_id=row.id,
        project_id=project_id,
        changes=changes,
        why=why,
        seen_at=edit.seen_at,
    ).id
