"""The list of conversations: a page of it in some order, what lies beside one, and all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Final

from django.db.models import Q, QuerySet

from helmdash.answers import HIDDEN, answer
from helmdash.queries.conversations.care import in_need
from helmdash.queries.conversations.conversations import ConversationView, view
from helmdash.queries.conversations.filters import (
    ConversationFilters,
    begun_before_end,
    filtered,
    found_by_index,
    looked_through,
    narrowed,
)
from helmdash.queries.conversations.in_range import first_of
from helmdash.queries.lists.paging import (
    Neighbours,
    Page,
    decode_ranked_cursor,
    decode_time_cursor,
    encode_cursor,
    newer,
    newest_first,
    older,
    oldest_first,
    onward,
)
from helmdash.queries.lists.sorting import Order, Sortable, order_of, sorted_neighbours, sorted_page
from helmdash.records.models import Conversation

# Those that need somebody first, the worst of them first.
ATTENTION: Final = "attention"
NEWEST: Final = "-latest"
OLDEST: Final = "latest"
# Orders that no index has, by the columns behind them.
SORTED: Final[Mapping[str, str]] = {
    "prompt": "prompt_tokens",
    "calls": "generation",
    "failed": "failures",
    "trimmed": "trims",
}
# A query's terms leave few of those in need: they are looked for among the newest.
_BY_ATTENTION: Final = Order(ATTENTION, "attention", is_down=True)
# An export reads so many rows of a kilobyte or so at a time.
_CHUNK: Final = 1000


@answer("ConversationList")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage(Page[ConversationView]):
    """A page of conversations.

    looked_to: where terms of a query are tried on each, how far this page did so. sorted_from: of
    an order that no index has, from when on they are sorted; None: all that fit.
    """

    items: tuple[ConversationView, ...]
    looked_to: Annotated[datetime | None, HIDDEN] = None
    sorted_from: Annotated[datetime | None, HIDDEN] = None


def page(
    *,
    project_id: int,
    filters: ConversationFilters,
    cursor: str | None = None,
    limit: int = 50,
    sort: str = NEWEST,
) -> ConversationPage:
    """Conversations, in the order of `sort`: ATTENTION, NEWEST, OLDEST, or a name of SORTED with a
    minus for the largest first. Three queries at most, one more with an end, two with a model, and
    those of TermTable.conditions.

    cursor None: from the first. Raises BadCursor for one that no page of this list gave.
    """
    order = _order(sort, filters)
    if order is not None:
        return _sorted(project_id, filters, order, cursor, limit)
    if sort == ATTENTION:
        found = _those_in_need_first(project_id, filters, cursor, limit + 1)
        more = found[limit - 1] if len(found) > limit else None
        return ConversationPage(
            items=tuple(map(view, found[:limit])),
            next=encode_cursor(more.attention, more.latest_at, more.pk) if more else None,
        )
    is_ahead = sort == OLDEST
    after = decode_time_cursor(cursor) if cursor else None
    fitting, looked = looked_through(project_id, filters, after, is_ahead=is_ahead)
    rows = onward(fitting, "latest_at", after, is_ahead=is_ahead)
    found = first_of(rows, filters, limit + 1, is_ahead=is_ahead)
    more = found[limit - 1] if len(found) > limit else None
    last = (more.latest_at, more.pk) if more else looked.last if looked else None
    return ConversationPage(
        items=tuple(map(view, found[:limit])),
        next=encode_cursor(*last) if last else None,
        looked_to=looked.last[0] if looked and not more else None,
    )


def neighbours(
    *, project_id: int, filters: ConversationFilters, conversation_id: str, sort: str = NEWEST
) -> Neighbours:
    """The conversations that the list shows beside one. Five queries at most, two more with a
    model, three with an end, and those of TermTable.conditions."""
    named = Conversation.objects.filter(project_id=project_id, name=conversation_id)
    row = named.only("attention", "latest_at").first()
    if row is None:
        return Neighbours()
    order = _order(sort, filters)
    if order is not None:
        return sorted_neighbours(_sortable(project_id, filters), order, row.pk)
    if sort != ATTENTION:
        place = (row.latest_at, row.pk)
        above, below = (_beside(project_id, filters, place, is_ahead) for is_ahead in (True, False))
        return Neighbours(
            before=below if sort == OLDEST else above, after=above if sort == OLDEST else below
        )
    rows, at = filtered(project_id, filters), ("latest_at", row.latest_at, row.pk)
    alike = rows.filter(attention=row.attention)
    worse = rows.filter(attention__gt=row.attention).filter(attention__gt=0)
    before = _first_name(newer(alike, *at), filters, is_ahead=True)
    before = before or _name(worse.order_by("attention", "latest_at", "id"))
    after = _first_name(older(alike, *at), filters, is_ahead=False)
    if after is None and row.attention:
        after = _name(in_need(rows.filter(attention__lt=row.attention)))
        others = _newest_first(rows.filter(attention=0), None)
        after = after or _first_name(others, filters, is_ahead=False)
    return Neighbours(before=before, after=after)


def export(
    *, project_id: int, filters: ConversationFilters, sort: str = OLDEST
) -> Iterator[ConversationView]:
    """Every conversation that fits the filters, in bounded memory; in an order of SORTED, or by
    attention, page by page. By time, one that gets a call meanwhile may come twice, and in NEWEST
    be left out. A query for each thousand, two more with a model."""
    if sort in (NEWEST, OLDEST):
        walk = newest_first if sort == NEWEST else oldest_first
        for chunk in walk(filtered(project_id, filters), "latest_at", chunk=_CHUNK):
            yield from map(view, chunk)
        return
    cursor: str | None = None
    while True:
        found = page(project_id=project_id, filters=filters, cursor=cursor, limit=_CHUNK, sort=sort)
        yield from found.items
        cursor = found.next
        if cursor is None:
            return


def _order(sort: str, filters: ConversationFilters) -> Order | None:
    """The order that is made among the newest; None for those of an index."""
    if sort == ATTENTION:
        return _BY_ATTENTION if filters.is_tried else None
    return order_of(sort, SORTED)


def _sortable(project_id: int, filters: ConversationFilters) -> Sortable[Conversation]:
    return Sortable(
        rows=begun_before_end(found_by_index(project_id, filters), filters),
        field="latest_at",
        narrow=partial(narrowed, project_id=project_id, filters=filters),
    )


def _sorted(
    project_id: int, filters: ConversationFilters, order: Order, cursor: str | None, limit: int
) -> ConversationPage:
    found = sorted_page(_sortable(project_id, filters), order, cursor=cursor, limit=limit)
    rows = Conversation.objects.in_bulk([pk for *_, pk in found.places])
    return ConversationPage(
        items=tuple(view(rows[pk]) for *_, pk in found.places if pk in rows),
        next=found.next,
        sorted_from=found.sorted_from,
    )


def _beside(
    project_id: int, filters: ConversationFilters, place: tuple[datetime, int], is_ahead: bool
) -> str | None:
    """The nearest by time."""
    fitting, _ = looked_through(project_id, filters, place, is_ahead=is_ahead)
    rows = onward(fitting, "latest_at", place, is_ahead=is_ahead)
    return _first_name(rows, filters, is_ahead=is_ahead)


def _those_in_need_first(
    project_id: int, filters: ConversationFilters, cursor: str | None, limit: int
) -> list[Conversation]:
    """Two lists, one after the other: each by an index of its own."""
    rows = filtered(project_id, filters)
    rank, at, pk = decode_ranked_cursor(cursor) if cursor else (None, None, None)
    found: list[Conversation] = []
    if rank != 0:
        needed = in_need(rows)
        if rank is not None:
            needed = needed.filter(
                Q(attention__lt=rank)
                | Q(attention=rank, latest_at__lt=at)
                | Q(attention=rank, latest_at=at, id__lt=pk),
                attention__lte=rank,
            )
        found = list(needed[:limit])
        cursor = None
    elif at is not None and pk is not None:
        cursor = encode_cursor(at, pk)
    if len(found) < limit:
        others = _newest_first(rows.filter(attention=0), cursor)
        found += first_of(others, filters, limit - len(found), is_ahead=False)
    return found


def _newest_first(rows: QuerySet[Conversation], cursor: str | None) -> QuerySet[Conversation]:
    if not cursor:
        return rows.order_by("-latest_at", "-id")
    return older(rows, "latest_at", *decode_time_cursor(cursor))


def _first_name(
    rows: QuerySet[Conversation], filters: ConversationFilters, *, is_ahead: bool
) -> str | None:
    found = first_of(rows, filters, 1, is_ahead=is_ahead, columns=("name",))
    return found[0][0] if found else None


def _name(rows: QuerySet[Conversation]) -> str | None:
    return rows.values_list("name", flat=True).first()
