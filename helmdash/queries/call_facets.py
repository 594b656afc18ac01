"""Of the calls that a list shows: which values they have, and how many have each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from helmdash.queries.call_filters import CallFilters, filtered, reach, ways_to_find

# Calls that are read for a page: some ten milliseconds.
MOST_COUNTED: Final = 2_000
# What somebody looks over at once.
_MOST_VALUES: Final = 12
# Fields of a query (call_terms.CALL_FIELDS) by their columns.
_COLUMNS: Final = {
    "level": "level",
    "cause": "cause",
    "finish": "finish_reason",
    "model": "model_key",
    "client": "client_name",
    "purpose": "purpose",
    "pack": "pack",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One field: its values with the number of calls that have each, most first; `more` values have
    fewer."""

    field: str
    values: tuple[tuple[str, int], ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What was counted: so many calls; is_all: there are no more that fit, so figures are exact."""

    calls: int
    is_all: bool
    facets: tuple[Facet, ...]

    def count(self, field: str, value: str) -> int:
        """How many of the counted calls have the value."""
        return next(
            (
                calls
                for facet in self.facets
                if facet.field == field
                for each, calls in facet.values
                if each == value
            ),
            0,
        )


def facets(*, project_id: int, filters: CallFilters) -> Facets:
    """Of the newest MOST_COUNTED calls that fit. One query, and those for the values of filters."""
    rows = filtered(project_id, filters).order_by("-started_at", "-id")
    looked = reach(project_id, filters)
    if looked:
        rows = looked.within(rows)
    found: dict[int, tuple[str | None, ...]] = {}
    for way in ways_to_find(rows, project_id, filters.q):
        told = way.values_list("id", *_COLUMNS.values())[: MOST_COUNTED + 1]
        found |= {pk: tuple(values) for pk, *values in told}
    counted = [*found.values()][:MOST_COUNTED]
    return Facets(
        calls=len(counted),
        is_all=len(found) <= MOST_COUNTED and looked is None,
        facets=tuple(
            _facet(name, Counter(row[at] for row in counted)) for at, name in enumerate(_COLUMNS)
        ),
    )


def _facet(name: str, counts: Counter[str | None]) -> Facet:
    ranked = sorted(
        ((value, calls) for value, calls in counts.items() if value),
        key=lambda pair: (-pair[1], pair[0]),
    )
    return Facet(
        field=name,
        values=tuple(ranked[:_MOST_VALUES]),
        more=max(len(ranked) - _MOST_VALUES, 0),
    )
