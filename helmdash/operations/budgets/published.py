"""Using the list of what vendors publish, in one project."""

from __future__ import annotations

from helmdash.core.access.permissions import Actor
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.queries.budgets import budgets
from helmdash.queries.budgets.budgets import BudgetRow
from helmdash.queries.line_edits import OwnEdit


def use_published_list(*, actor: Actor, project_id: int, is_used: bool) -> BudgetRow:
    """Have windows and prices that no row of the project knows taken from the list, or no more: an
    edit of the project's own fallback row, which its history reverts.

    Raises as `change_lines` does.
    """
    row = budgets.table(project_id=project_id).row_to_edit("", project=str(project_id))
    edit = OwnEdit(row=row, changes={"uses_published_list": is_used})
    return store_own_edit(actor=actor, project_id=project_id, edit=edit)
