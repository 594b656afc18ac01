"""Edits of budgets that are only tried: read, checked, and put into a table of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import STORED_FIELDS, BudgetSpec
from helmdash.core.budgets.figures import FigureField, Range
from helmdash.core.evidence.suggested import Value

# So many rows in one what-if: more than anybody edits by hand at a time.
MOST_EDITS: Final = 50
_KEY_CHARS: Final = 255
# What a column of a database can hold.
_LARGEST: Final = 2**63 - 1
# Not what a row says, but which row it is, and why.
_FIXED: Final = frozenset({"key", "evidence"})
EDITABLE: Final = {each.name: each for each in STORED_FIELDS if each.name not in _FIXED}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEdit:
    """Other figures in the row with a key, in one project alone. key "": the fallback.

    changes: by the name of the field; None: as the default has it.
    """

    key: str
    changes: Mapping[str, Value | None]

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return {"key": self.key, "changes": dict(self.changes)}


@dataclass(frozen=True, slots=True)
class EditProblem:
    """What is wrong with an edit: the place, such as `edits.0.changes.tier`, and a sentence."""

    field: str
    message: str


class BadEdits(Exception):
    """Edits that no budget could be given; `errors` says why."""

    def __init__(self, errors: Sequence[EditProblem]) -> None:
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in errors))
        self.errors = tuple(errors)


def read_edits(stored: Iterable[Mapping[str, Any]]) -> tuple[RowEdit, ...]:
    """Edits out of plain JSON, each value of the kind that its field has. Raises BadEdits."""
    found: list[RowEdit] = []
    errors: list[EditProblem] = []
    for at, each in enumerate(stored):
        changes: dict[str, Value | None] = {}
        for name, value in each["changes"].items():
            try:
                changes[name] = read_value(name, value)
            except ValueError as error:
                errors.append(EditProblem(f"edits.{at}.changes.{name}", str(error)))
        found.append(RowEdit(key=str(each["key"]).strip(), changes=changes))
    errors += _faults(found)
    if errors:
        raise BadEdits(errors)
    return tuple(found)


def read_value(name: str, value: object) -> Value | None:
    """A figure as its field holds it, plain. Raises ValueError with a sentence."""
    field = EDITABLE.get(name)
    if field is None:
        raise ValueError(f"is no figure of a budget; there are {', '.join(EDITABLE)}")
    if value is None:
        if not field.may_be_none:
            raise ValueError("may not be empty")
        return None
    kind = field.kind
    if issubclass(kind, Enum):
        known = [each.value for each in kind]
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return str(value)
    if kind is bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value
    if kind is str:
        if not isinstance(value, str) or len(value) > _KEY_CHARS or "\0" in value:
            raise ValueError(f"must be a text of at most {_KEY_CHARS} characters")
        return value
    return _number(field, value)


def edited_rows(
    table: BudgetTable, edits: Iterable[RowEdit], *, project: str
) -> tuple[BudgetSpec, ...]:
    """The rows as the edits would have them, in one project alone. Raises BadEdits for a row that
    could not be stored so."""
    rows, errors = [], []
    for at, edit in enumerate(edits):
        base = table.row_to_edit(edit.key, project=project)
        read: dict[str, Any] = {
            name: None if value is None else EDITABLE[name].read(value)
            for name, value in edit.changes.items()
        }
        row = replace(base, **read)
        errors += [
            EditProblem(f"edits.{at}.changes.{name}", message)
            for name, message in budget_problems(row)
        ]
        rows.append(row)
    if errors:
        raise BadEdits(errors)
    return tuple(rows)


def _faults(edits: Sequence[RowEdit]) -> list[EditProblem]:
    if not edits:
        return [EditProblem("edits", "name at least one row and what it is to be")]
    if len(edits) > MOST_EDITS:
        return [EditProblem("edits", f"at most {MOST_EDITS} rows in one what-if")]
    errors = []
    seen: set[str] = set()
    for at, edit in enumerate(edits):
        low = edit.key.lower()
        if len(edit.key) > _KEY_CHARS or "\0" in edit.key:
            errors.append(
                EditProblem(f"edits.{at}.key", f"must be at most {_KEY_CHARS} characters")
            )
        elif low in seen:
            errors.append(EditProblem(f"edits.{at}.key", "is named twice; put both into one"))
        if not edit.changes:
            errors.append(EditProblem(f"edits.{at}.changes", "name a figure and its new value"))
        seen.add(low)
    return errors


def _number(field: FigureField, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a number")
    if field.kind is int and value != int(value):
        raise ValueError("must be a whole number")
    bounds = next((mark for mark in field.marks if isinstance(mark, Range)), Range(0))
    most = bounds.most or _LARGEST
    if not bounds.least <= value <= most:
        raise ValueError(f"must be between {bounds.least:,} and {most:,}")
    return int(value) if field.kind is int else float(value)
