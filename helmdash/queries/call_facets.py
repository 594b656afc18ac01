"""Which values the calls of a list have, and how many have each."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from helmdash.queries.call_filters import CallFilters, filtered, reach, ways_to_find
from helmdash.queries.facets import MOST_COUNTED, Facets, count_values

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


def facets(*, project_id: int, filters: CallFilters) -> Facets:
    """Of the newest MOST_COUNTED calls that fit. One query for each of ways_to_find, and those for
    the values of filters."""
    rows = filtered(project_id, filters).order_by("-started_at", "-id")
    looked = reach(project_id, filters)
    if looked:
        rows = looked.within(rows)
    found: dict[tuple[datetime, int], tuple[str | None, ...]] = {}
    for way in ways_to_find(rows, project_id, filters.q):
        told = way.values_list("started_at", "id", *_COLUMNS.values())[: MOST_COUNTED + 1]
        found |= {(at, pk): tuple(values) for at, pk, *values in told}
    newest = sorted(found, reverse=True)[:MOST_COUNTED]
    counted = [
        {name: (value,) for name, value in zip(_COLUMNS, found[place], strict=True)}
        for place in newest
    ]
    is_all = len(found) <= MOST_COUNTED and looked is None
    return count_values(counted, _COLUMNS, is_all=is_all)
