"""The list of fits: a page of it in some order, what lies beside one, and all of it.

Filters read the newest MOST_READ fits of a range and no more: what a range costs does not depend
on how many it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db.models import Min, QuerySet

from helmdash.queries.calls.list_series import Newest
from helmdash.queries.fitting.fitting import FitView, view
from helmdash.queries.fitting.trim_filters import (
    FACT_COLUMNS,
    FitFacts,
    Test,
    TrimFilters,
    TrimOutcome,
    facts,
    facts_of_row,
    matcher,
)
from helmdash.queries.fitting.trim_totals import TrimTotals, totals
from helmdash.queries.lists.facets import Facets, count_values
from helmdash.queries.lists.paging import (
    Neighbours,
    Page,
    decode_time_cursor,
    encode_cursor,
    newer,
    newest_first,
    older,
    oldest_first,
)
from helmdash.queries.lists.reach import Reach
from helmdash.queries.lists.sorting import Order, order_of, read_place, write_place
from helmdash.records.models import Fit

# Rows of eleven columns by an index: some hundredths of a second.
MOST_READ: Final = 2_000
# Read first on each side of a fit.
_NEAR: Final = 50
NEWEST: Final = "-at"
OLDEST: Final = "at"
# Orders that are not by time, by the figures behind them.
SORTED: Final[Mapping[str, Callable[[FitFacts], int]]] = {
    "before": lambda fit: fit.before_bytes,
    "after": lambda fit: fit.after_bytes,
    "saved": lambda fit: fit.saved_bytes,
}
# With Trims of some ten kilobytes each.
_EXPORT_CHUNK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPage(Page[FitView]):
    """A page of fits.

    `next` may follow a page that is not full: MOST_READ fits were looked at for it. looked_to: how
    far they were then. sorted_from: of an order that is not by time, from when on they are sorted;
    None: all that fit. Of the first page only: totals: those of the range, where there is any;
    newest: when those that fit the filters were made, and what they came to; offered: the values
    that the fits which were read have, by the name of their filter; cut: the keys of those that
    were cut.
    """

    totals: TrimTotals | None = None
    newest: Newest = field(default_factory=lambda: Newest(rows=()))
    offered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cut: tuple[int, ...] = ()
    looked_to: datetime | None = None
    sorted_from: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Fits that were read, and those of them that fit; last: the one read last where there are
    more."""

    all: list[FitFacts]
    found: list[FitFacts]
    last: FitFacts | None


def page(
    *,
    project_id: int,
    filters: TrimFilters,
    cursor: str | None = None,
    limit: int = 50,
    sort: str = NEWEST,
    has_figures: bool = True,
) -> TrimPage:
    """Fits that fit the filters, in the order of `sort`: NEWEST, OLDEST, or a name of SORTED with a
    minus for the largest first. Two queries, one more from the oldest on, those for the names of
    models where one is asked for, and fifteen at most for the figures of more than MOST_READ.

    cursor None: from the first. has_figures False: only its items. Raises BadCursor for a cursor
    that no page of this list gave.
    """
    wanted = matcher(project_id, filters)
    rows = _in_range(project_id, filters)
    newest = None if cursor else _read(rows, wanted)
    order = order_of(sort, SORTED)
    if order is not None:
        shown, following, sorted_from = _sorted(rows, wanted, order, newest, cursor, limit)
        looked_to = None
    else:
        shown, last, looked_to = _by_time(rows, wanted, newest, cursor, limit, sort == OLDEST)
        following = encode_cursor(last.created_at, last.id) if last else None
        sorted_from = None
    listed = TrimPage(
        items=_views(shown), next=following, looked_to=looked_to, sorted_from=sorted_from
    )
    if newest is None or not has_figures:
        return listed
    is_more = newest.last is not None
    return replace(
        listed,
        totals=totals(project_id, filters, newest.found, newest.all, is_more=is_more)
        if newest.found
        else None,
        newest=Newest(
            rows=[(each.created_at, each.outcome.value) for each in newest.found],
            read_from=newest.last.created_at if newest.last else None,
        ),
        offered=_offered(newest.all),
        cut=tuple(each.id for each in newest.found if each.outcome is not TrimOutcome.WHOLE),
    )


def neighbours(
    *, project_id: int, filters: TrimFilters, fit_id: str, sort: str = NEWEST
) -> Neighbours:
    """The fits that the list shows beside one, looked for among the nearest MOST_READ on each side,
    or among those that are sorted. Six queries at most."""
    row = Fit.objects.filter(project_id=project_id, name=fit_id).only("created_at").first()
    if row is None:
        return Neighbours()
    wanted = matcher(project_id, filters)
    rows = _in_range(project_id, filters)
    order = order_of(sort, SORTED)
    if order is not None:
        found = sorted(_read(rows, wanted).found, key=_key(order))
        names = [each.name for each in found]
        at = names.index(fit_id) if fit_id in names else None
        if at is None:
            return Neighbours()
        return Neighbours(
            before=names[at - 1] if at else None,
            after=names[at + 1] if at + 1 < len(names) else None,
        )
    above, below = (
        _first(side(rows, "created_at", row.created_at, row.pk), wanted) for side in (newer, older)
    )
    is_turned = sort == OLDEST
    return Neighbours(before=below if is_turned else above, after=above if is_turned else below)


def export(*, project_id: int, filters: TrimFilters, sort: str = OLDEST) -> Iterator[FitView]:
    """Every fit that fits the filters: all of the range, in bounded memory; in an order of SORTED
    those that the list has."""
    wanted = matcher(project_id, filters)
    rows = _in_range(project_id, filters)
    order = order_of(sort, SORTED)
    if order is not None:
        found = sorted(_read(rows, wanted).found, key=_key(order))
        for first in range(0, len(found), _EXPORT_CHUNK):
            yield from _views(found[first : first + _EXPORT_CHUNK])
        return
    walk = newest_first if sort == NEWEST else oldest_first
    for chunk in walk(rows, "created_at", chunk=_EXPORT_CHUNK):
        yield from (view(row) for row in chunk if wanted(facts_of_row(row)))


def _read(rows: QuerySet[Fit], wanted: Test, most: int | None = None) -> _Read:
    """The first rows. One query."""
    most = most or MOST_READ
    read = [*map(facts, rows.values_list(*FACT_COLUMNS)[: most + 1])]
    kept = read[:most]
    return _Read(
        all=kept,
        found=[each for each in kept if wanted(each)],
        last=kept[-1] if len(read) > most else None,
    )


def _by_time(
    rows: QuerySet[Fit],
    wanted: Test,
    newest: _Read | None,
    cursor: str | None,
    limit: int,
    is_ahead: bool,
) -> tuple[list[FitFacts], FitFacts | None, datetime | None]:
    """The fits of a page, the one that the next page begins after, and how far it looked where it
    is not full."""
    if newest is None or is_ahead:
        if cursor:
            rows = (newer if is_ahead else older)(rows, "created_at", *decode_time_cursor(cursor))
        else:
            rows = rows.order_by("created_at", "id")
        newest = _read(rows, wanted)
    shown = newest.found[:limit]
    if len(newest.found) > limit:
        return shown, shown[-1], None
    return shown, newest.last, newest.last.created_at if newest.last else None


def _sorted(
    rows: QuerySet[Fit],
    wanted: Test,
    order: Order,
    newest: _Read | None,
    cursor: str | None,
    limit: int,
) -> tuple[list[FitFacts], str | None, datetime | None]:
    """The fits of a page, the cursor of the next, and from when on they are sorted."""
    place, window = read_place(cursor, "created_at", order) if cursor else (None, None)
    if newest is None:
        # What came since the first page does not push the last ones out.
        newest = _read(window.within(rows) if window else rows, wanted, 2 * MOST_READ)
    elif newest.last is not None:
        window = Reach(field="created_at", last=(newest.last.created_at, newest.last.id))
    key = _key(order)
    found = sorted(newest.found, key=key)
    if place is not None:
        value, at, pk = place
        after = _ranked(order, value or 0, at, pk)
        found = [each for each in found if key(each) > after]
    shown = found[:limit]
    following = None
    if len(found) > limit:
        last = shown[-1]
        following = write_place((SORTED[order.name](last), last.created_at, last.id), window, order)
    return shown, following, window.last[0] if window else None


def _key(order: Order) -> Callable[[FitFacts], tuple[float, ...]]:
    figure = SORTED[order.name]
    return lambda fit: _ranked(order, figure(fit), fit.created_at, fit.id)


def _ranked(order: Order, value: int, at: datetime, pk: int) -> tuple[float, ...]:
    """Smaller is further up; of the same figure the newest are."""
    return (-value if order.is_down else value, -at.timestamp(), -pk)


def _first(rows: QuerySet[Fit], wanted: Test) -> str | None:
    """The id of the first row that is wanted: mostly it is near, and few are read for it."""
    for part in (slice(_NEAR), slice(_NEAR, MOST_READ)):
        told = map(facts, rows.values_list(*FACT_COLUMNS)[part])
        found = next((each for each in told if wanted(each)), None)
        if found is not None:
            return found.name
    return None


def first_moment(*, project_id: int) -> datetime | None:
    """When the first fit was made. One query."""
    rows = Fit.objects.filter(project_id=project_id)
    at: datetime | None = rows.aggregate(at=Min("created_at"))["at"]
    return at


def _in_range(project_id: int, filters: TrimFilters) -> QuerySet[Fit]:
    rows = Fit.objects.filter(project_id=project_id)
    if filters.since is not None:
        rows = rows.filter(created_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(created_at__lt=filters.until)
    return rows.order_by("-created_at", "-id")


def _views(facts: Iterable[FitFacts]) -> tuple[FitView, ...]:
    ids = [each.id for each in facts]
    # Not what they could be made again of: a whole catalog each.
    rows = Fit.objects.defer("inputs").in_bulk(ids)
    return tuple(view(rows[pk]) for pk in ids if pk in rows)


def offered(*, project_id: int) -> dict[str, tuple[str, ...]]:
    """The values that the newest fits have, by the name of their filter. One query."""
    return _offered(_read(_in_range(project_id, TrimFilters()), lambda _fit: True).all)


def facets(*, project_id: int, filters: TrimFilters) -> Facets:
    """Which values the fits have that fit, of the newest that are read, and how many have each. One
    query, one more for a model."""
    read = _read(_in_range(project_id, filters), matcher(project_id, filters))
    counted = [
        {
            "outcome": (fit.outcome.value,),
            "model": (fit.model,),
            "client": (fit.client,),
            "catalog": (fit.catalog,),
            "cut": set(fit.labels),
        }
        for fit in read.found
    ]
    fields = ("outcome", "model", "client", "catalog", "cut")
    return count_values(counted, fields, is_all=read.last is None)


def _offered(read: Iterable[FitFacts]) -> dict[str, tuple[str, ...]]:
    """The values to choose from, the frequent ones first."""
    found: dict[str, Counter[str]] = {
        name: Counter() for name in ("model", "client", "catalog", "cut")
    }
    for fit in read:
        found["cut"].update(label for label, *_ in fit.steps)
        for name in ("model", "client", "catalog"):
            found[name][getattr(fit, name)] += 1
    return {
        name: tuple(value for value, _ in counts.most_common(200) if value)
        for name, counts in found.items()
    }
