"""Which values the conversations of a list have, and how many have each."""

from __future__ import annotations

from typing import Final

from helmdash.queries.conversations.filters import ConversationFilters, looked_through
from helmdash.queries.conversations.in_range import first_of
from helmdash.queries.lists.facets import MOST_COUNTED, Facets, count_values

# Fields of a query (filters.CONVERSATION_TERMS) by their columns.
_COLUMNS: Final = {
    "level": "level",
    "cause": "latest_cause",
    "model": "model_key",
    "client": "client_name",
    "reason": "level_reason",
}


def facets(*, project_id: int, filters: ConversationFilters) -> Facets:
    """Of the newest MOST_COUNTED conversations that fit. One query, one more where terms are tried,
    one where there is an end, and those for the values of filters."""
    fitting, looked = looked_through(project_id, filters)
    rows = fitting.order_by("-latest_at", "-id")
    columns = _COLUMNS.values()
    found = first_of(rows, filters, MOST_COUNTED + 1, is_ahead=False, columns=columns)
    counted = [
        {name: (value,) for name, value in zip(_COLUMNS, row, strict=True)}
        for row in found[:MOST_COUNTED]
    ]
    is_all = len(found) <= MOST_COUNTED and looked is None
    return count_values(counted, _COLUMNS, is_all=is_all)
