"""Edits of budgets as the page shows them: columns by the names of the table, and links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.text.time_ranges import TimeRange
from helmdash.pages.forms.budget_forms import COLUMNS
from helmdash.pages.parts.budgets.budget_rows import calls_of
from helmdash.queries.budgets.budget_edits import BudgetEdit

_WORDS = {each.name: each.words for each in STORED_FIELDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """One column by its name on pages, before and after as texts."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEdit:
    """An edit; calls: the address of the calls it held for, from it to the next one."""

    told: BudgetEdit
    changes: tuple[ShownChange, ...]
    calls: str
    may_revert: bool


def shown_edits(
    found: Iterable[BudgetEdit], *, may_revert: Callable[[int | None], bool]
) -> tuple[ShownEdit, ...]:
    """Edits with what the page adds; may_revert: whether the reader may edit rows of a project
    (None: those of every project)."""
    return tuple(
        ShownEdit(
            told=each,
            changes=tuple(
                ShownChange(
                    name=_name(change.field),
                    before=_text(change.before),
                    after=_text(change.after),
                )
                for change in each.changes
            ),
            calls=calls_of(each.key, range=_range(each)),
            may_revert=may_revert(each.project_id),
        )
        for each in found
    )


def _range(edit: BudgetEdit) -> str:
    """From the edit to the next one of the row, or on and on."""
    return TimeRange(since=edit.at, until=edit.until).exact


def _name(field: str) -> str:
    if field in COLUMNS:
        return COLUMNS[field][0]
    words = _WORDS[field]
    return words[:1].upper() + words[1:]


def _text(value: object) -> str:
    if value is None or value == "":
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
