"""The list of plans: a page of it in some order, what lies beside one, and over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

from django.db.models import Min

from helmdash.answers import HIDDEN
from helmdash.queries.lists.by_value import first_rows, first_values
from helmdash.queries.lists.paging import (
    Neighbours,
    Page,
    decode_time_cursor,
    encode_cursor,
    newer,
    newest_first,
    older,
    oldest_first,
    onward,
)
from helmdash.queries.lists.sorting import Order, Sortable, order_of, sorted_neighbours, sorted_page
from helmdash.queries.plans.filters import (
    MOST_TRIED,
    fitting,
    found_by_index,
    narrowed,
    reach,
)
from helmdash.queries.plans.items import PlanItem, item, rows_of_items, tools_of
from helmdash.records.models import PlanRecord

NEWEST: Final = "-at"
OLDEST: Final = "at"
# Orders that no index has, by the columns behind them.
SORTED: Final[Mapping[str, str]] = {
    "steps": "step_count",
    "latency": "latency_ms",
    "before": "before_bytes",
    "after": "after_bytes",
}
# An export reads so many rows of a kilobyte or so at a time.
_CHUNK: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanList(Page[PlanItem]):
    """A page of plans.

    looked_to: where terms of a query are tried on each, how far this page did so. sorted_from: of
    an order that no index has, from when on they are sorted; None: all that fit.
    """

    items: tuple[PlanItem, ...]
    looked_to: Annotated[datetime | None, HIDDEN] = None
    sorted_from: Annotated[datetime | None, HIDDEN] = None


def page(
    *,
    project_id: int,
    now: datetime,
    cursor: str | None = None,
    limit: int = 50,
    sort: str = NEWEST,
    **filters: Any,
) -> PlanList:
    """Plans, in the order of `sort`: NEWEST, OLDEST, or a name of SORTED with a minus for the
    largest first. Two queries, three more with a model, two more in an order of SORTED, and with
    terms those of TermTable.conditions and one for how far it looks. Raises BadCursor for a cursor
    that no page of this list gave.

    filters: those of `filters.narrowed`. A plan that runs for longer than STALLED_AFTER reads as
    failed.
    """
    order = order_of(sort, SORTED)
    if order is not None:
        return _sorted(project_id, now, filters, order, cursor, limit)
    is_ahead = sort == OLDEST
    after = decode_time_cursor(cursor) if cursor else None
    narrow = narrowed(project_id=project_id, now=now, **filters)
    rows = onward(narrow, "started_at", after, is_ahead=is_ahead)
    looked = reach(beside=after, is_ahead=is_ahead, project_id=project_id, now=now, **filters)
    rows = looked.within(rows) if looked else rows
    items = rows_of_items(rows).defer("result", "sketch")
    found = first_rows(items, "started_at", limit + 1)
    more = found[limit - 1] if len(found) > limit else None
    last = (more.started_at, more.pk) if more else looked.last if looked else None
    return PlanList(
        items=tuple(_items(found[:limit], now)),
        next=encode_cursor(*last) if last else None,
        looked_to=looked.last[0] if looked and not more else None,
    )


def neighbours(
    *, project_id: int, now: datetime, plan_id: str, sort: str = NEWEST, **filters: Any
) -> Neighbours:
    """The plans that the list shows beside one. Five queries, three more with a model, and those
    of TermTable.conditions."""
    named = PlanRecord.objects.filter(project_id=project_id, name=plan_id)
    row = named.only("started_at").first()
    if row is None:
        return Neighbours()
    order = order_of(sort, SORTED)
    if order is not None:
        sortable = _sortable(project_id, now, filters)
        return sorted_neighbours(sortable, order, row.pk, most=MOST_TRIED)
    rows, at = narrowed(project_id=project_id, now=now, **filters), (row.started_at, row.pk)

    def nearest(is_ahead: bool) -> str | None:
        looked = reach(beside=at, is_ahead=is_ahead, project_id=project_id, now=now, **filters)
        side = (newer if is_ahead else older)(rows, "started_at", *at)
        near = looked.within(side) if looked else side
        return next((name for (name,) in first_values(near, "started_at", 1, ["name"])), None)

    is_turned = sort == OLDEST
    return Neighbours(before=nearest(not is_turned), after=nearest(is_turned))


def export(
    *, project_id: int, now: datetime, sort: str = OLDEST, **filters: Any
) -> Iterator[PlanItem]:
    """Every plan that fits the filters, in bounded memory; in an order of SORTED those that the
    list has. Two queries for each thousand, three more with a model."""
    order = order_of(sort, SORTED)
    if order is not None:
        cursor: str | None = None
        while True:
            found = _sorted(project_id, now, filters, order, cursor, _CHUNK)
            yield from found.items
            cursor = found.next
            if cursor is None:
                return
    rows = rows_of_items(narrowed(project_id=project_id, now=now, **filters))
    walk = newest_first if sort == NEWEST else oldest_first
    for chunk in walk(rows.defer("result", "sketch"), "started_at", chunk=_CHUNK):
        yield from _items(chunk, now)


def first_moment(*, project_id: int) -> datetime | None:
    """When the first plan was asked for. One query."""
    rows = PlanRecord.objects.filter(project_id=project_id)
    at: datetime | None = rows.aggregate(at=Min("started_at"))["at"]
    return at


def _sortable(project_id: int, now: datetime, filters: Mapping[str, Any]) -> Sortable[PlanRecord]:
    return Sortable(
        rows=found_by_index(project_id=project_id, now=now, **filters),
        field="started_at",
        narrow=partial(fitting, project_id=project_id, now=now, terms=filters.get("terms")),
    )


def _sorted(
    project_id: int,
    now: datetime,
    filters: Mapping[str, Any],
    order: Order,
    cursor: str | None,
    limit: int,
) -> PlanList:
    found = sorted_page(
        _sortable(project_id, now, filters), order, cursor=cursor, limit=limit, most=MOST_TRIED
    )
    keys = [pk for *_, pk in found.places]
    told = rows_of_items(PlanRecord.objects.filter(project_id=project_id, pk__in=keys))
    rows = {row.pk: row for row in told.defer("result", "sketch")}
    return PlanList(
        items=tuple(_items([rows[pk] for pk in keys if pk in rows], now)),
        next=found.next,
        sorted_from=found.sorted_from,
    )


def _items(rows: list[PlanRecord], now: datetime) -> Iterator[PlanItem]:
    tools = tools_of(row.pk for row in rows)
    return (item(row, tools.get(row.pk, ()), now) for row in rows)
