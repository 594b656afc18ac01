"""Moving the lines of one model, from where they were found to be wrong."""

from __future__ import annotations

from helmdash.core.access.permissions import Actor
from helmdash.operations.budgets.editing import change_budget, copy_budget
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import BudgetRow
from helmdash.queries.line_edits import Lines, OwnEdit, Subject, edit_of_lines


def change_lines(
    *, actor: Actor, project: ProjectInfo, subject: Subject, lines: Lines
) -> BudgetRow:
    """Give a model other lines in this project alone.

    The project's own row is changed; where a row of every project governs, the project gets one
    that is equal but for the lines. Raises Forbidden, BudgetProblems, BudgetConflict where somebody
    else made that row meanwhile, and NoSuchBudget where it was deleted meanwhile.
    """
    edit = edit_of_lines(project_id=project.id, subject=subject, lines=lines)
    return store_own_edit(actor=actor, project_id=project.id, edit=edit)


def store_own_edit(*, actor: Actor, project_id: int, edit: OwnEdit) -> BudgetRow:
    """Store an edit in one project alone: to the project's own row, or to a copy of another.

    Raises as `change_lines` does.
    """
    row = edit.row
    if row.budget_id is not None:
        return change_budget(
            actor=actor, budget_id=row.budget_id, project_id=project_id, changes=edit.changes
        )
    return copy_budget(actor=actor, base=row, changes=edit.changes, project_id=project_id)
