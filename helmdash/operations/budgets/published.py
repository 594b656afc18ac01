"""Using the list of what vendors publish, in one project."""

from __future__ import annotations

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.budgets.editing import BudgetConflict
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.queries.budgets import budgets
from helmdash.queries.line_edits import OwnEdit


def use_published_list(*, actor: Actor, project_id: int, is_used: bool) -> None:
    """Have windows and prices that no row of the project knows taken from the list, or no more: an
    edit of the project's own fallback row, which its history reverts. Nothing is stored where it is
    so already: a row that is saved as it is would be confirmed.

    Raises as `change_lines` does.
    """
    require(actor, Right.CHANGE_BUDGETS, project_id=project_id)
    try:
        _store(actor, project_id, is_used)
    except BudgetConflict:
        # Somebody else made the project's own row between the read and the write.
        _store(actor, project_id, is_used)


def _store(actor: Actor, project_id: int, is_used: bool) -> None:
    row = budgets.table(project_id=project_id).row_to_edit("", project=str(project_id))
    if row.uses_published_list is not is_used:
        edit = OwnEdit(row=row, changes={"uses_published_list": is_used})
        store_own_edit(actor=actor, project_id=project_id, edit=edit)
