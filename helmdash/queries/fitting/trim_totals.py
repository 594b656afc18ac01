"""What the fits of a range came to together: what is cut most, and for whom.

Figures of more fits than a page reads come from rollups; with a filter they are of the newest, and
say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

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
from helmdash.queries.fitting.trim_filters import FitFacts, TrimFilters

# What fills a table that a person reads.
_MOST_ROWS: Final = 8


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


def totals(
    project_id: int,
    filters: TrimFilters,
    found: list[FitFacts],
    read: list[FitFacts],
    *,
    is_more: bool,
) -> TrimTotals:
    """The figures of the range. found: those that fit, of those that were read; is_more: there are
    more. Fifteen queries at most, and only where all of a range are asked for."""
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


def _of_those_read(found: list[FitFacts], first_at: datetime, *, is_sample: bool) -> TrimTotals:
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
