"""Lists in the order of a figure that no index has: the newest rows that fit, so many of them.

Which rows are sorted is said with the first page and kept in its cursor: what comes in meanwhile
moves nothing, and each row comes once. Rows whose figure is not known come last, either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import OrderBy

from helmdash.queries.lists.leading import led
from helmdash.queries.lists.paging import (
    BadCursor,
    Neighbours,
    decode_parts,
    decode_time_cursor,
    encode_cursor,
)
from helmdash.queries.lists.reach import Reach

# Rows that are sorted for a page: some tens of milliseconds.
MOST_SORTED: Final = 20_000

_M = TypeVar("_M", bound=Model)
# A figure of a row, its time and its key: where it stands in the list.
Place = tuple[int | None, datetime, int]


@dataclass(frozen=True, slots=True)
class Order:
    """name: as an address has it; column: the figure behind it, "" where it is none of the
    database's; is_down: the largest first."""

    name: str
    column: str
    is_down: bool

    @property
    def text(self) -> str:
        """As an address has it."""
        return f"-{self.name}" if self.is_down else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sortable(Generic[_M]):
    """Rows to be sorted.

    rows: what indexes find; field: when each was; narrow: leaves those that fit.
    """

    rows: QuerySet[_M]
    field: str
    narrow: Callable[[QuerySet[_M]], QuerySet[_M]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """One page: the places of its rows in order. sorted_from: older rows are not in this list;
    None: it has all that fit."""

    places: tuple[Place, ...]
    next: str | None
    sorted_from: datetime | None


def sorted_page(
    given: Sortable[_M],
    order: Order,
    *,
    cursor: str | None,
    limit: int,
    most: int | None = None,
) -> Sorted:
    """The rows of a page, of the newest `most` (None: MOST_SORTED). Two queries, one with a cursor;
    where several filters have an index those of queries.lists.leading besides. Raises BadCursor for
    a cursor that no page of this order gave."""
    after, window = read_place(cursor, given.field, order) if cursor else (None, None)
    inside = window.within(given.rows) if window else given.rows
    inside, looked = _led(given, inside, most, is_tried=after is None)
    if after is None:
        window = looked
    rows = _within(given, inside, looked, order)
    if after is not None:
        rows = rows.filter(_following(after, given.field, order))
    ordered = rows.order_by(*_ordering(given.field, order))
    found = list(ordered.values_list("sort_value", given.field, "pk")[: limit + 1])
    more = len(found) > limit
    return Sorted(
        places=tuple(found[:limit]),
        next=write_place(found[limit - 1], window, order) if more else None,
        sorted_from=window.last[0] if window else None,
    )


def sorted_neighbours(
    given: Sortable[_M], order: Order, pk: int, *, most: int | None = None
) -> Neighbours:
    """The names of the rows beside one; nothing where the list does not have it. Four queries at
    most, and those of queries.lists.leading."""
    rows = _within(given, *_led(given, given.rows, most, is_tried=True), order)
    place = rows.filter(pk=pk).values_list("sort_value", given.field, "pk").first()
    if place is None:
        return Neighbours()
    ahead = rows.filter(_preceding(place, given.field, order))
    behind = rows.filter(_following(place, given.field, order))
    return Neighbours(
        before=_name(ahead.order_by(*_ordering(given.field, order, is_turned=True))),
        after=_name(behind.order_by(*_ordering(given.field, order))),
    )


def _name(rows: QuerySet[_M]) -> str | None:
    return rows.values_list("name", flat=True).first()


def _led(
    given: Sortable[_M], rows: QuerySet[_M], most: int | None, *, is_tried: bool
) -> tuple[QuerySet[_M], Reach | None]:
    return led(rows, given.field, is_tried=is_tried, most=most or MOST_SORTED)


def _within(
    given: Sortable[_M], rows: QuerySet[_M], window: Reach | None, order: Order
) -> QuerySet[_M]:
    rows = window.within(rows) if window else rows
    return given.narrow(rows).annotate(sort_value=F(order.column))  # type: ignore[return-value]


def _ordering(field: str, order: Order, *, is_turned: bool = False) -> tuple[OrderBy | str, ...]:
    """The newest of those with the same figure first; is_turned: all the other way round."""
    value, is_down = F("sort_value"), order.is_down != is_turned
    # Never both: what is not known is last in the list, so it is first from its end.
    nulls = {"nulls_first": True} if is_turned else {"nulls_last": True}
    by = value.desc(**nulls) if is_down else value.asc(**nulls)
    return (by, field, "pk") if is_turned else (by, f"-{field}", "-pk")


def _following(place: Place, field: str, order: Order) -> Q:
    value, at, pk = place
    older = Q(**{f"{field}__lt": at}) | Q(**{field: at}, pk__lt=pk)
    if value is None:
        return Q(sort_value__isnull=True) & older
    beyond = Q(sort_value__lt=value) if order.is_down else Q(sort_value__gt=value)
    return beyond | (Q(sort_value=value) & older) | Q(sort_value__isnull=True)


def _preceding(place: Place, field: str, order: Order) -> Q:
    value, at, pk = place
    newer = Q(**{f"{field}__gt": at}) | Q(**{field: at}, pk__gt=pk)
    if value is None:
        return Q(sort_value__isnull=False) | newer
    before = Q(sort_value__gt=value) if order.is_down else Q(sort_value__lt=value)
    return before | (Q(sort_value=value) & newer)


def write_place(place: Place, window: Reach | None, order: Order) -> str:
    """The cursor that goes on after a place; window: the rows that are sorted."""
    value, at, pk = place
    low = window.last if window else ("", 0)
    return encode_cursor(order.text, "" if value is None else value, at, pk, *low)


def read_place(cursor: str, field: str, order: Order) -> tuple[Place, Reach | None]:
    """What `write_place` wrote. Raises BadCursor for anything else, and for another order's."""
    text, value, at, pk, low_at, low_pk = decode_parts(cursor, 6)
    is_figure = value == "" or (isinstance(value, int) and abs(value) <= 2**62)
    if text != order.text or not is_figure:
        raise BadCursor("cursor")
    place = decode_time_cursor(encode_cursor(at, pk))
    window = None
    if low_at != "":
        window = Reach(field=field, last=decode_time_cursor(encode_cursor(low_at, low_pk)))
    return (None if value == "" else int(value), *place), window


def order_of(text: str, columns: Mapping[str, object]) -> Order | None:
    """The order that an address names; None where `columns` has no such figure."""
    name = text.removeprefix("-")
    if name not in columns:
        return None
    column = columns[name]
    return Order(name, column if isinstance(column, str) else "", is_down=text.startswith("-"))
