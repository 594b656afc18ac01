"""Of the items that a list shows: which values they have, and how many have each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Rows that are read for a page: some ten milliseconds.
MOST_COUNTED: Final = 2_000
# What somebody looks over at once.
_MOST_VALUES: Final = 12

# The values of one row, by the fields of a query; None and "" are none.
Values = Mapping[str, Iterable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One field: its values with the number of rows that have each, most first; `more` values have
    fewer."""

    field: str
    values: tuple[tuple[str, int], ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What was counted: so many rows; is_all: there are no more that fit, so figures are exact."""

    rows: int
    is_all: bool
    facets: tuple[Facet, ...]

    def count(self, field: str, value: str) -> int:
        """How many of the counted rows have the value."""
        return next(
            (
                rows
                for facet in self.facets
                if facet.field == field
                for each, rows in facet.values
                if each == value
            ),
            0,
        )


def count_values(rows: Sequence[Values], fields: Iterable[str], *, is_all: bool) -> Facets:
    """The facets of some rows, in the order of the fields."""
    return Facets(
        rows=len(rows),
        is_all=is_all,
        facets=tuple(
            _facet(name, Counter(value for row in rows for value in row[name])) for name in fields
        ),
    )


def _facet(name: str, counts: Counter[str | None]) -> Facet:
    ranked = sorted(
        ((value, rows) for value, rows in counts.items() if value),
        key=lambda pair: (-pair[1], pair[0]),
    )
    return Facet(
        field=name,
        values=tuple(ranked[:_MOST_VALUES]),
        more=max(len(ranked) - _MOST_VALUES, 0),
    )
