"""Which values the calls of a list have, and how many have each."""

from __future__ import annotations

from typing import Final

from helmdash.queries.calls.filters import CallFilters, looked_through, ways_to_find
from helmdash.queries.lists.by_value import first_values
from helmdash.queries.lists.facets import MOST_COUNTED, Facets, count_values

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
    fitting, looked = looked_through(project_id, filters)
    rows = fitting.order_by("-started_at", "-id")
    ways = ways_to_find(rows, project_id, filters.q)
    columns = _COLUMNS.values()
    found = first_values(rows, "started_at", MOST_COUNTED + 1, columns, ways=ways)
    counted = [
        {name: (value,) for name, value in zip(_COLUMNS, row, strict=True)}
        for row in found[:MOST_COUNTED]
    ]
    is_all = len(found) <= MOST_COUNTED and looked is None
    return count_values(counted, _COLUMNS, is_all=is_all)
