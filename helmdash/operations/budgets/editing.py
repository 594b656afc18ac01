"""Changing budgets: checked with the same sentences wherever it is done, and kept in the history.

An edit rules the next lookup in every process: queries.budgets.budgets compares the newest history
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budgets import STORED_FIELDS, BudgetSpec
from helmdash.core.budgets.learned_windows import WindowBy, window_after
from helmdash.queries.budgets.budgets import BudgetRow, find
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import Budget
from helmdash.records.models.budgets import SHIPPED_REASON

# What the column of the history holds.
MOST_WHY: Final = 100
_FIELDS = {each.name: each for each in STORED_FIELDS}
_EDITED_MEANWHILE = "Somebody edited this row meanwhile: look at it again."
_FALLBACK_KEY = "The fallback keeps its empty key: it governs every model without a row of its own."


@dataclass(frozen=True, slots=True)
class BudgetProblem:
    """A wrong member of a budget, and what to do about it."""

    field: str
    message: str


class BudgetProblems(Exception):
    """The budget cannot be stored as it is; `errors` names the members."""

    def __init__(self, errors: tuple[BudgetProblem, ...]) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


class BudgetConflict(BudgetProblems):
    """What is stored stands against it: a row with this key, or the fallback that must stay."""


class EditedMeanwhile(BudgetConflict):
    """The row was edited since whoever changes it saw it."""

    def __init__(self) -> None:
        super().__init__((BudgetProblem("", _EDITED_MEANWHILE),))


class NoSuchBudget(Exception):
    """The project sees no row with this number."""


def create_budget(
    *, actor: Actor, values: Mapping[str, object], project_id: int | None, why: str = ""
) -> BudgetRow:
    """Add a row: for one project, or for all (None).

    values: fields of a budget by name; None for "as the default has it". why: words for the
    history.
    Raises Forbidden, BudgetProblems, or BudgetConflict when the key is taken.
    """
    return _add(actor, Budget(project_id=project_id), values, why)


def copy_budget(
    *,
    actor: Actor,
    base: BudgetSpec,
    changes: Mapping[str, object],
    project_id: int,
    why: str = "",
) -> BudgetRow:
    """Add a row for one project that is as `base` but for some figures. Unless they speak of the
    window, whose word it is stays as `base` has it.

    Raises as `create_budget` does.
    """
    stands = base.stored()
    values = {**stands, **changes}
    by = window_after(base.window_by, stands, values)
    copied_from = "" if by is WindowBy.OPERATOR else by.value
    row = Budget(project_id=project_id, window_copied_from=copied_from)
    return _add(actor, row, values, why)


def _add(actor: Actor, row: Budget, values: Mapping[str, object], why: str) -> BudgetRow:
    require(actor, Right.CHANGE_BUDGETS, project_id=row.project_id)
    _set(row, values)
    with transaction.atomic():
        _save(row, actor, why)
        note_row(actor=actor, row=row, before=None)
    return _read(row)


def change_budget(
    *,
    actor: Actor,
    budget_id: int,
    project_id: int,
    changes: Mapping[str, object],
    why: str = "",
    seen_at: datetime | None = None,
) -> BudgetRow:
    """Change columns of a row the project sees; whose row it is never changes here.

    why: words for the history, MOST_WHY characters at most. seen_at: when the row was edited last
    as whoever changes it saw it; None: however it is now.

    Raises NoSuchBudget, Forbidden (the row is every project's, say), BudgetProblems, or
    BudgetConflict when the new key is taken, EditedMeanwhile when the row was edited since it was
    seen.
    """
    with transaction.atomic():
        row = _locked(actor, budget_id, project_id, seen_at)
        if row.key == "" and str(changes.get("key", "")).strip():
            raise BudgetProblems((BudgetProblem("key", _FALLBACK_KEY),))
        before = values_of(row)
        _set(row, changes)
        _save(row, actor, why)
        note_row(actor=actor, row=row, before=before)
    return _read(row)


def delete_budget(
    *,
    actor: Actor,
    budget_id: int,
    project_id: int,
    why: str = "",
    seen_at: datetime | None = None,
) -> None:
    """Remove a row the project sees. why: words for the history. seen_at: as for `change_budget`.

    Raises NoSuchBudget, Forbidden, BudgetConflict for the fallback, or EditedMeanwhile.
    """
    with transaction.atomic():
        row = _locked(actor, budget_id, project_id, seen_at)
        if row.key == "" and row.project_id is None:
            raise BudgetConflict(
                (
                    BudgetProblem(
                        "key",
                        "The fallback cannot be deleted: it governs every model without a row of "
                        "its own. Change its figures instead.",
                    ),
                )
            )
        _note(row, actor, why)
        note_row(actor=actor, row=row, before=values_of(row), is_gone=True)
        row.delete()


def restore_budget(*, actor: Actor, row: Budget, why: str = "") -> BudgetRow:
    """Bring a deleted row back under its old number, as its history has it.

    Raises Forbidden, BudgetProblems, or BudgetConflict when it is there, or its key is taken.
    """
    require(actor, Right.CHANGE_BUDGETS, project_id=row.project_id)
    with transaction.atomic():
        if Budget.objects.filter(pk=row.pk).exists():
            raise BudgetConflict((BudgetProblem("key", "This row is there already."),))
        row._state.adding = True
        _save(row, actor, why, is_new=True)
        note_row(actor=actor, row=row, before=None)
    return _read(row)


def _locked(actor: Actor, budget_id: int, project_id: int, seen_at: datetime | None) -> Budget:
    visible = Q(project__isnull=True) | Q(project_id=project_id)
    row = Budget.objects.select_for_update().filter(visible, pk=budget_id).first()
    if row is None:
        raise NoSuchBudget(f"there is no budget {budget_id}")
    require(actor, Right.CHANGE_BUDGETS, project_id=row.project_id)
    if seen_at is not None and row.updated_at != seen_at:
        raise EditedMeanwhile
    return row


def _set(row: Budget, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        setattr(row, name, _FIELDS[name].stored(value))


def _save(row: Budget, actor: Actor, why: str, *, is_new: bool = False) -> None:
    try:
        row.full_clean()
        _note(row, actor, why)
        row.save(force_insert=is_new)
    except ValidationError as error:
        raise _problems(error) from None
    except IntegrityError:
        # Another writer was first between the check and the write.
        taken = BudgetProblem("key", "A budget with this key exists already.")
        raise BudgetConflict((taken,)) from None


def _note(row: Budget, actor: Actor, why: str) -> None:
    # Whose edit it is, a page's request tells; these words are the shipped rows' own.
    is_own = why.strip().lower() != SHIPPED_REASON
    # simple_history reads this attribute when it writes the history row.
    row._change_reason = why[:MOST_WHY] if why and is_own else str(actor)  # type: ignore[attr-defined]


def _problems(error: ValidationError) -> BudgetProblems:
    found = [
        BudgetProblem(_member(field, message), message)
        for field, messages in error.message_dict.items()
        for message in messages
    ]
    is_taken = all(problem.message.endswith(" already.") for problem in found)
    return (BudgetConflict if is_taken else BudgetProblems)(tuple(found))


def _member(field: str, message: str) -> str:
    """Constraints over several columns are about the key, or name their column first."""
    if field != NON_FIELD_ERRORS:
        return field
    first = message.split(" ", 1)[0]
    if any(first == column.name for column in Budget._meta.fields):
        return first
    return "enabled" if "disabled" in message else "key"


def _read(row: Budget) -> BudgetRow:
    found = find(project_id=row.project_id, budget_id=row.pk)
    if found is None:  # deleted by somebody between the commit and this read
        raise NoSuchBudget(f"there is no budget {row.pk}")
    return found
