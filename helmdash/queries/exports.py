"""Lists as files: every item that fits the filters of its list, oldest first, in bounded memory.

Calls and fits are exported by their own modules (`queries.calls.export`, `queries.trims.export`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from helmdash.queries.conversations.conversations import (
    ConversationFilters,
    ConversationView,
    filtered,
    view,
)
from helmdash.queries.paging import oldest_first
from helmdash.queries.plans.items import PlanItem, item, narrowed, rows_of_items, tools_of

# Rows of a kilobyte or so.
_CHUNK: Final = 1000


def conversations(*, project_id: int, filters: ConversationFilters) -> Iterator[ConversationView]:
    """By their newest call. One that gets a call meanwhile may come twice, none is left out. A
    query for each thousand, two more with a model."""
    rows = filtered(project_id, filters)
    for chunk in oldest_first(rows, "latest_at", chunk=_CHUNK):
        yield from map(view, chunk)


def plans(*, project_id: int, now: datetime, **filters: Any) -> Iterator[PlanItem]:
    """filters: as `plans.page` takes them. Two queries for each thousand, three more with a
    model."""
    rows = rows_of_items(narrowed(project_id=project_id, now=now, **filters))
    for chunk in oldest_first(rows.defer("result", "sketch"), "started_at", chunk=_CHUNK):
        tools = tools_of(row.pk for row in chunk)
        yield from (item(row, tools.get(row.pk, ()), now) for row in chunk)
