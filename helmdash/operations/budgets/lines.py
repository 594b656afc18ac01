"""Moving the lines of one model, from where they were found to be wrong."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.access.permissions import Actor
from helmdash.core.budgets.budgets import STORED_FIELDS, BudgetSpec
from helmdash.operations.budgets.editing import change_budget, create_budget
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import BudgetRow
from helmdash.queries.line_edits import Lines, Subject, edited_row


def change_lines(
    *, actor: Actor, project: ProjectInfo, subject: Subject, lines: Lines
) -> BudgetRow:
    """Give a model other lines in this project alone.

    The project's own row is changed; where a row of every project governs, the project gets one
    that is equal but for the lines. Raises Forbidden, BudgetProblems, BudgetConflict where somebody
    else made that row meanwhile, and NoSuchBudget where it was deleted meanwhile.
    """
    row = edited_row(project_id=project.id, subject=subject, lines=lines)
    changes = {
        "optimal_max_tokens": lines.caution,
        "critical_max_tokens": lines.critical,
        "context_length": lines.window,
    }
    return store_own_row(actor=actor, project_id=project.id, row=row, changes=changes)


def store_own_row(
    *, actor: Actor, project_id: int, row: BudgetSpec, changes: Mapping[str, object]
) -> BudgetRow:
    """Store a row of `queries.line_edits.own_row` with some columns changed: the project's own as
    it is but for these, or a new one.

    Raises as `change_lines` does.
    """
    if row.budget_id is not None:
        return change_budget(
            actor=actor, budget_id=row.budget_id, project_id=project_id, changes=changes
        )
    values = {each.name: getattr(row, each.name) for each in STORED_FIELDS}
    return create_budget(actor=actor, values={**values, **changes}, project_id=project_id)
