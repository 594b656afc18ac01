"""The fits of a range: which of them cut something, what is cut most, and for whom.

Filters read the newest MOST_READ fits of a range and no more: what a range costs does not depend
on how many it has. Figures of more come from rollups; with a filter they are of the newest, and say
so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db.models import Min, QuerySet

from helmdash.core.rollups.figures import Marginal, heads
from helmdash.core.rollups.fit_facts import (
    AFTER_BYTES,
    BEFORE_BYTES,
    FITS,
    OVER,
    STEP_BYTES,
    STEP_ENTRIES,
    STEP_FITS,
    TRIMMED,
)
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.fitting import FitView, view
from helmdash.queries.list_series import Newest
from helmdash.queries.paging import (
    Neighbours,
    Page,
    decode_time_cursor,
    encode_cursor,
    newer,
    older,
    oldest_first,
)
from helmdash.records.fit_facts import steps_of
from helmdash.records.models import Fit

# Their steps are taken out of Trims of some ten kilobytes each: a tenth of a second.
MOST_READ: Final = 2_000
# Read first on each side of a fit.
_NEAR: Final = 50
# With Trims of some ten kilobytes each.
_EXPORT_CHUNK: Final = 200
# What fills a table that a person reads.
_MOST_ROWS: Final = 8


class TrimOutcome(StrEnum):
    """What a fit came to."""

    CUT = "cut"
    WHOLE = "whole"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimFilters:
    """What the list is narrowed to; None leaves a filter out.

    `model` is any spelling of it, `client` the caller as its fit named it, `cut` the label of a
    step (core.catalog.compaction).
    """

    model: str | None = None
    client: str | None = None
    catalog: str | None = None
    cut: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(slots=True)
class CutTotal:
    """What one step did to all fits together: how many it was needed for, the entries it went
    over, the bytes it saved."""

    name: str
    fits: int = 0
    entries: int = 0
    saved_bytes: int = 0


@dataclass(slots=True)
class FitTotal:
    """Fits together (of a model, or all): how many, how many lost something, how many were too
    large even so, and their catalogs' bytes."""

    name: str = ""
    fits: int = 0
    cut: int = 0
    over: int = 0
    before_bytes: int = 0
    after_bytes: int = 0

    @property
    def saved_bytes(self) -> int:
        """What was cut."""
        return self.before_bytes - self.after_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimTotals:
    """The figures of the range.

    cuts: what is cut most first; models: for whom most is cut first, as `clients`. is_sample: the
    range has more than MOST_READ fits, and these are the newest, from `first_at` on. is_rounded:
    they are of whole quarter-hours. is_behind: the newest are not added up yet.
    """

    all: FitTotal
    cuts: tuple[CutTotal, ...]
    models: tuple[FitTotal, ...]
    clients: tuple[FitTotal, ...]
    is_sample: bool
    first_at: datetime
    is_rounded: bool = False
    is_behind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPage(Page[FitView]):
    """A page of fits, newest first.

    `next` may follow a page that is not full: MOST_READ fits were looked at for it. totals: those
    of the range, on its first page only, and where there is any. newest: when those that fit the
    filters were made, and what they came to. offered: the values that the fits which were read
    have, by the name of their filter.
    """

    totals: TrimTotals | None
    newest: Newest
    offered: dict[str, tuple[str, ...]]
    cut: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """A fit without its entries."""

    id: int
    created_at: datetime
    model: str
    client: str
    catalog: str
    before_bytes: int
    after_bytes: int
    fits: bool
    steps: tuple[tuple[str, int, int], ...] = field(default=())

    @property
    def outcome(self) -> TrimOutcome:
        if not self.fits:
            return TrimOutcome.OVER
        return TrimOutcome.CUT if self.after_bytes != self.before_bytes else TrimOutcome.WHOLE


def page(
    *, project_id: int, filters: TrimFilters, cursor: str | None = None, limit: int = 50
) -> TrimPage:
    """Fits that fit the filters, newest first. Two queries, those for the names of models where one
    is asked for, and fifteen at most for the figures of more than MOST_READ.

    cursor None: from the newest. Raises BadCursor for one that no page of this list gave.
    """
    rows = _in_range(project_id, filters)
    if cursor:
        rows = older(rows, "created_at", *decode_time_cursor(cursor))
    read = [*map(_facts, rows.values_list(*_COLUMNS)[: MOST_READ + 1])]
    is_more, read = len(read) > MOST_READ, read[:MOST_READ]
    wanted = _matcher(project_id, filters)
    found = [each for each in read if wanted(each)]
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else read[-1] if is_more else None
    return TrimPage(
        items=_views(shown),
        next=encode_cursor(last.created_at, last.id) if last else None,
        totals=_totals(project_id, filters, found, read, is_more=is_more)
        if found and not cursor
        else None,
        newest=Newest(
            rows=[(each.created_at, each.outcome.value) for each in found],
            read_from=read[-1].created_at if is_more else None,
        ),
        offered=_offered(read),
        cut=tuple(each.id for each in found if each.outcome is not TrimOutcome.WHOLE),
    )


def neighbours(*, project_id: int, filters: TrimFilters, fit_id: str) -> Neighbours:
    """The fits that the list shows beside one, looked for among the nearest MOST_READ on each side.
    Six queries at most."""
    row = Fit.objects.filter(project_id=project_id, name=fit_id).only("created_at").first()
    if row is None:
        return Neighbours()
    wanted = _matcher(project_id, filters)
    rows = _in_range(project_id, filters)
    before, after = (
        _first(side(rows, "created_at", row.created_at, row.pk), wanted) for side in (newer, older)
    )
    return Neighbours(before=before, after=after)


def _first(rows: QuerySet[Fit], wanted: Callable[[_Facts], bool]) -> str | None:
    """The id of the first row that is wanted: mostly it is near, and few are read for it."""
    for part in (slice(_NEAR), slice(_NEAR, MOST_READ)):
        found = next(
            (each for each in map(_facts, rows.values_list(*_COLUMNS)[part]) if wanted(each)), None
        )
        if found is not None:
            return Fit.objects.filter(pk=found.id).values_list("name", flat=True).first()
    return None


def export(*, project_id: int, filters: TrimFilters) -> Iterator[FitView]:
    """Every fit that fits the filters, oldest first: all of the range, in bounded memory."""
    wanted = _matcher(project_id, filters)
    for chunk in oldest_first(_in_range(project_id, filters), "created_at", chunk=_EXPORT_CHUNK):
        yield from (view(row) for row in chunk if wanted(_facts_of(row)))


def first_moment(*, project_id: int) -> datetime | None:
    """When the first fit was made. One query."""
    rows = Fit.objects.filter(project_id=project_id)
    at: datetime | None = rows.aggregate(at=Min("created_at"))["at"]
    return at


_COLUMNS: Final = (
    "id",
    "created_at",
    "model",
    "caller",
    "catalog_name",
    "before_bytes",
    "after_bytes",
    "fits",
    "trim__steps",
)


def _in_range(project_id: int, filters: TrimFilters) -> QuerySet[Fit]:
    rows = Fit.objects.filter(project_id=project_id)
    if filters.since is not None:
        rows = rows.filter(created_at__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(created_at__lt=filters.until)
    return rows.order_by("-created_at", "-id")


def _facts(row: tuple[Any, ...]) -> _Facts:
    pk, at, model, caller, catalog, before, after, fits, steps = row
    return _Facts(
        id=pk,
        created_at=at,
        model=model,
        client=caller,
        catalog=catalog,
        before_bytes=before,
        after_bytes=after,
        fits=fits,
        steps=tuple(steps_of(steps)),
    )


def _facts_of(row: Fit) -> _Facts:
    *plain, _ = _COLUMNS
    return _facts((*(getattr(row, name) for name in plain), row.trim.get("steps")))


def _matcher(project_id: int, filters: TrimFilters) -> Callable[[_Facts], bool]:
    tests: list[Callable[[_Facts], bool]] = []
    if filters.model is not None:
        key_of = budgets.table(project_id=project_id).key_of
        model = key_of(filters.model)
        keys: dict[str, str] = {}
        tests.append(
            lambda fit: (
                (keys.get(fit.model) or keys.setdefault(fit.model, key_of(fit.model))) == model
            )
        )
    if filters.cut is not None:
        tests.append(lambda fit: any(label == filters.cut for label, *_ in fit.steps))
    for name in ("client", "catalog", "outcome"):
        value = getattr(filters, name)
        if value is not None:
            tests.append(lambda fit, name=name, value=value: getattr(fit, name) == value)  # type: ignore[misc]
    return lambda fit: all(test(fit) for test in tests)


def _views(facts: Iterable[_Facts]) -> tuple[FitView, ...]:
    ids = [each.id for each in facts]
    rows = Fit.objects.in_bulk(ids)
    return tuple(view(rows[pk]) for pk in ids if pk in rows)


def _totals(
    project_id: int, filters: TrimFilters, found: list[_Facts], read: list[_Facts], *, is_more: bool
) -> TrimTotals:
    is_all = is_more and filters == TrimFilters(since=filters.since, until=filters.until)
    added = _added_up(project_id, filters, read[-1].created_at) if is_all else None
    return added or _of_those_read(found, read[-1].created_at, is_sample=is_more)


def _added_up(project_id: int, filters: TrimFilters, first_at: datetime) -> TrimTotals | None:
    """From rollups; None where these do not reach back so far yet."""
    parts = [
        rollups.figures(
            project_id=project_id, marginal=marginal, since=filters.since, until=filters.until
        )
        for marginal in (Marginal.FIT, Marginal.FIT_MODEL, Marginal.FIT_CALLER)
    ]
    told = [each for each in parts if each is not None]
    if len(told) < len(parts):
        return None
    whole, models, clients = (each.totals() for each in told)
    counts = whole.get((), {})
    by_head = heads(counts)
    return TrimTotals(
        all=_fit_total("", counts),
        cuts=_most_saved(
            CutTotal(
                name=label,
                fits=fits,
                entries=by_head.get(STEP_ENTRIES, {}).get(label, 0),
                saved_bytes=by_head.get(STEP_BYTES, {}).get(label, 0),
            )
            for label, fits in by_head.get(STEP_FITS, {}).items()
        ),
        models=_most_cut(_fit_total(key[0], each) for key, each in models.items()),
        clients=_most_cut(_fit_total(key[0], each) for key, each in clients.items()),
        is_sample=False,
        first_at=first_at,
        is_rounded=any(each.is_rounded for each in told),
        is_behind=any(each.is_behind for each in told),
    )


def _fit_total(name: str, counts: Mapping[str, int]) -> FitTotal:
    return FitTotal(
        name=name,
        fits=counts.get(FITS, 0),
        cut=counts.get(TRIMMED, 0),
        over=counts.get(OVER, 0),
        before_bytes=counts.get(BEFORE_BYTES, 0),
        after_bytes=counts.get(AFTER_BYTES, 0),
    )


def _of_those_read(found: list[_Facts], first_at: datetime, *, is_sample: bool) -> TrimTotals:
    whole = FitTotal()
    cuts: dict[str, CutTotal] = {}
    models: dict[str, FitTotal] = {}
    clients: dict[str, FitTotal] = {}
    for fit in found:
        for total in (
            whole,
            models.setdefault(fit.model, FitTotal(fit.model)),
            clients.setdefault(fit.client, FitTotal(fit.client)),
        ):
            total.fits += 1
            total.cut += fit.after_bytes != fit.before_bytes
            total.over += not fit.fits
            total.before_bytes += fit.before_bytes
            total.after_bytes += fit.after_bytes
        for label, entries, saved in fit.steps:
            cut = cuts.setdefault(label, CutTotal(label))
            cut.fits += 1
            cut.entries += entries
            cut.saved_bytes += saved
    return TrimTotals(
        all=whole,
        cuts=_most_saved(cuts.values()),
        models=_most_cut(models.values()),
        clients=_most_cut(clients.values()),
        is_sample=is_sample,
        first_at=first_at,
    )


def _most_saved(cuts: Iterable[CutTotal]) -> tuple[CutTotal, ...]:
    return tuple(sorted(cuts, key=lambda each: (-each.saved_bytes, each.name)))


def _most_cut(totals: Iterable[FitTotal]) -> tuple[FitTotal, ...]:
    return tuple(sorted(totals, key=lambda each: (-each.saved_bytes, each.name))[:_MOST_ROWS])


def _offered(read: Iterable[_Facts]) -> dict[str, tuple[str, ...]]:
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
