"""The list of calls: a page of it in some order, what lies beside one, and all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Final

from helmdash.answers import HIDDEN, answer
from helmdash.queries.calls.calls import CallView, view
from helmdash.queries.calls.filters import (
    CallFilters,
    filtered,
    found_by_index,
    looked_through,
    narrowed,
    searches,
    ways_to_find,
)
from helmdash.queries.lists.by_value import first_rows
from helmdash.queries.lists.paging import (
    Neighbours,
    Page,
    decode_time_cursor,
    encode_cursor,
    newest_first,
    oldest_first,
    onward,
)
from helmdash.queries.lists.sorting import Order, Sortable, order_of, sorted_neighbours, sorted_page
from helmdash.records.call_names import Place, calls_at, find_places
from helmdash.records.models import Call

NEWEST: Final = "-started"
OLDEST: Final = "started"
# Orders that no index has, by the columns behind them.
SORTED: Final[Mapping[str, str]] = {
    "prompt": "prompt_tokens",
    "output": "completion_tokens",
    "latency": "latency_ms",
    "ttft": "ttft_ms",
}
# An export reads this many rows at a time: memory stays flat however many calls there are.
_EXPORT_CHUNK: Final = 1000


@answer("CallList")
@dataclass(frozen=True, slots=True, kw_only=True)
class CallPage(Page[CallView]):
    """A page of calls.

    looked_to: where terms of a query are tried on each call, how far this page did so; calls from
    beyond are for the next page, which there is then even if this one is not full. sorted_from: of
    an order that no index has, from when on calls are sorted; None: all that fit.
    """

    items: tuple[CallView, ...]
    looked_to: Annotated[datetime | None, HIDDEN] = None
    sorted_from: Annotated[datetime | None, HIDDEN] = None


def page(
    *,
    project_id: int,
    filters: CallFilters,
    cursor: str | None = None,
    limit: int = 50,
    sort: str = NEWEST,
) -> CallPage:
    """Calls, in the order of `sort`: NEWEST, OLDEST, or a name of SORTED with a minus for the
    largest first. One query (two more in an order of SORTED), one more with a conversation, two
    more with a model, two with filters that joint_months knows, at most seven more with `q`, and
    with terms those of TermTable.conditions and one for how far it looks.

    cursor None: from the first. Raises BadCursor for one that no page of this list gave.
    """
    order = order_of(sort, SORTED)
    if order is not None:
        return _sorted(project_id, filters, order, cursor, limit)
    is_ahead = sort == OLDEST
    after = decode_time_cursor(cursor) if cursor else None
    fitting, looked = looked_through(project_id, filters, after, is_ahead=is_ahead)
    rows = onward(fitting, "started_at", after, is_ahead=is_ahead).select_related("conversation")
    ways = ways_to_find(rows, project_id, filters.q)
    found = first_rows(rows, "started_at", limit + 1, ways=ways)
    more = found[limit - 1] if len(found) > limit else None
    last = _moment(more) if more else looked.last if looked else None
    return CallPage(
        items=tuple(view(row) for row in found[:limit]),
        next=encode_cursor(*last) if last else None,
        looked_to=looked.last[0] if looked and not more else None,
    )


def neighbours(
    *, project_id: int, filters: CallFilters, call_id: str, sort: str = NEWEST
) -> Neighbours:
    """The calls that the list shows beside one. Five queries at most, and those that `page` makes
    for the values of filters, twice those for how far it looks."""
    place = find_places(project_id, [call_id]).get(call_id)
    if place is None:
        return Neighbours()
    order = order_of(sort, SORTED)
    if order is not None:
        return sorted_neighbours(_sortable(project_id, filters), order, place.call_id)
    at = (place.started_at, place.call_id)

    def nearest(*, is_ahead: bool) -> list[Call]:
        fitting, _ = looked_through(project_id, filters, at, is_ahead=is_ahead)
        side = onward(fitting, "started_at", at, is_ahead=is_ahead)
        ways = ways_to_find(side, project_id, filters.q)
        return [row for way in ways for row in way.only("name", "started_at", "project_id")[:1]]

    ahead, behind = nearest(is_ahead=True), nearest(is_ahead=False)
    above, below = min(ahead, key=_moment, default=None), max(behind, key=_moment, default=None)
    before, after = (below, above) if sort == OLDEST else (above, below)
    return Neighbours(before=before.name if before else None, after=after.name if after else None)


def export(*, project_id: int, filters: CallFilters, sort: str = OLDEST) -> Iterator[CallView]:
    """Every call that fits the filters, in bounded memory; in an order of SORTED the calls that the
    list has, page by page."""
    order = order_of(sort, SORTED)
    if order is not None:
        yield from _all_sorted(project_id, filters, order)
        return
    rows = filtered(project_id, filters)
    if filters.q:
        by_name, by_correlation, by_conversation = searches(project_id, filters.q)
        rows = rows.filter(by_name | by_correlation | by_conversation)
    walk = newest_first if sort == NEWEST else oldest_first
    for chunk in walk(rows.select_related("conversation"), "started_at", chunk=_EXPORT_CHUNK):
        yield from map(view, chunk)


def _moment(row: Call) -> tuple[datetime, int]:
    return row.started_at, row.pk


def _sortable(project_id: int, filters: CallFilters) -> Sortable[Call]:
    return Sortable(
        rows=found_by_index(project_id, filters),
        field="started_at",
        narrow=partial(narrowed, project_id=project_id, filters=filters),
    )


def _sorted(
    project_id: int, filters: CallFilters, order: Order, cursor: str | None, limit: int
) -> CallPage:
    found = sorted_page(_sortable(project_id, filters), order, cursor=cursor, limit=limit)
    places = [Place(pk, at) for _, at, pk in found.places]
    rows = {row.pk: row for row in calls_at(project_id, places).select_related("conversation")}
    return CallPage(
        items=tuple(view(rows[place.call_id]) for place in places if place.call_id in rows),
        next=found.next,
        sorted_from=found.sorted_from,
    )


def _all_sorted(project_id: int, filters: CallFilters, order: Order) -> Iterator[CallView]:
    cursor: str | None = None
    while True:
        found = _sorted(project_id, filters, order, cursor, _EXPORT_CHUNK)
        yield from found.items
        cursor = found.next
        if cursor is None:
            return
