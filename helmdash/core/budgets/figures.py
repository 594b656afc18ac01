"""What a budget's field says of itself, beside its type: its bounds, and where people find it.

The members of the API's bodies, the admin's form and the page that explains a budget are made of
these marks (`core.budgets.budgets` sets them), so that a field is declared once. Its meaning is the
`Doc` of helmdash.answers. The columns of `records` have help and bounds of their own, since a
migration keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from enum import Enum, StrEnum
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

from helmdash.answers import split


class Section(StrEnum):
    """A part of the form in which a budget is edited."""

    ROW = "Row"
    SIZE = "Size"
    TRUST = "Trust"
    HEALTH = "Health"
    ESTIMATE = "Estimate"
    COST = "Cost"


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most that a number may be; most None: as its column can hold."""

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Multiline:
    """A text of several lines, of so many characters at most. Others are words of one line."""

    most: int


@dataclass(frozen=True, slots=True)
class Label:
    """Where people find the field: the section of its form, its name in mid-sentence, its unit.

    name "": it is not among the figures of an explained budget, or is told there with its reason.
    unit "": none. listed: what it is called in a list of all fields, where that is not the name or
    the field's own word.
    """

    section: Section
    name: str = ""
    unit: str = ""
    listed: str = ""


Tokens = Annotated[int, Range(1)]
UsdPerMtok = Annotated[float, Range(0, 1e9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureField:
    """One field of a budget as it is declared; kind: its type without None and marks."""

    name: str
    kind: type
    marks: tuple[object, ...]
    label: Label
    may_be_none: bool
    is_required: bool

    @property
    def words(self) -> str:
        """What it is called among all fields, with its unit, in mid-sentence."""
        name = self.label.listed or self.label.name or self.name.replace("_", " ")
        return f"{name}, {self.label.unit}" if self.label.unit else name

    def read(self, stored: Any) -> Any:
        """The value as the field has it, of what a file or a column holds. A word becomes a
        member of its enum; None and the empty word are None where the field may be that."""
        if issubclass(self.kind, Enum):
            return self.kind(stored) if stored or not self.may_be_none else None
        return stored

    def stored(self, value: object) -> object:
        """The value as its column holds it: the empty text, where a text is None."""
        return "" if value is None and issubclass(self.kind, str) else value


def fields_of(kind: type) -> tuple[FigureField, ...]:
    """The fields of a budget's dataclass that an operator edits, those with a label, in order."""
    return tuple(_labelled(kind))


def _labelled(kind: Any) -> Iterator[FigureField]:
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        whole, marks = split(hints[each.name])
        label = next((mark for mark in marks if isinstance(mark, Label)), None)
        if label is None:
            continue
        parts = get_args(whole)
        may_be_none = NoneType in parts
        inner, more = split(parts[0] if may_be_none else whole)
        yield FigureField(
            name=each.name,
            kind=inner,
            marks=(*more, *marks),
            label=label,
            may_be_none=may_be_none,
            is_required=each.default is MISSING,
        )
