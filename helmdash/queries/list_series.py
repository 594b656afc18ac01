"""The rows of a list over time, in bars, where no rollups tell them: conversations, fits, and plans
under filters that rollups do not carry. They are counted as they are read, the newest first, up to
a stated number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from helmdash.core.rollups.figures import CALLS, Marginal
from helmdash.core.rollups.periods import bars, moment_of
from helmdash.queries import rollups
from helmdash.queries.series import (
    MOST_BARS,
    Bar,
    Moment,
    Series,
    Split,
    bounds,
    count_rows,
    estimate_before,
    series,
)

# Rows that are read for a drawing which is made anew with each call that comes in: some ten
# milliseconds.
MOST_LISTED: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest rows of a list that fit, newest first. read_from: rows of before were not looked
    at; None: these are all."""

    rows: Sequence[Moment]
    read_from: datetime | None = None


def newest(found: Sequence[Moment], *, read_from: datetime | None = None) -> Newest:
    """Of MOST_LISTED rows and one more, where there are more. read_from: rows of before were not
    asked for."""
    if len(found) <= MOST_LISTED:
        return Newest(rows=found, read_from=read_from)
    return Newest(rows=found[:MOST_LISTED], read_from=found[MOST_LISTED][0])


def list_series(
    found: Newest,
    *,
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    first_at: Callable[[], datetime | None],
) -> Series:
    """Bars of a list's rows over its range; without `since` from the first of them on.

    Where not all rows were read, bars before are estimates, by how many rows came to a call among
    those that were. first_at finds when the oldest was; it is asked only then. No query where all
    rows were read, else at most six and that of `first_at`.
    """
    rows, read_from = found.rows, found.read_from
    if read_from and not rows:
        # Of those that were looked at none fits: no share of what is before says anything.
        return Series(bars=(), is_behind=False)
    start = since or (first_at() if read_from else rows[-1][0] if rows else None)
    if start is None:
        return Series(bars=(), is_behind=False)
    exact, seen = count_rows(_empty(start, until, now), rows)
    if read_from is None or not exact:
        return Series(bars=exact, is_behind=False)
    calls = series(project_id=project_id, since=start, until=until, now=now, split=Split.LEVEL)
    base = _calls_since(read_from, project_id, exact[-1].until)
    estimated = estimate_before(read_from, exact, calls.bars, seen, base)
    return Series(bars=estimated, is_behind=calls.is_behind)


def _empty(start: datetime, until: datetime | None, now: datetime) -> tuple[Bar, ...]:
    """The bars of a range in which nothing was."""
    first, end = bounds(start, until, now)
    if first >= end:
        return ()
    _, edges = bars(first, end, most=MOST_BARS)
    return tuple(
        Bar(since=moment_of(begin), until=moment_of(after), calls=0)
        for begin, after in pairwise(edges)
    )


def _calls_since(at: datetime, project_id: int, until: datetime) -> int:
    """The project's calls; 0 where that is not known."""
    found = rollups.figures(project_id=project_id, marginal=Marginal.ALL, since=at, until=until)
    return 0 if found is None else sum(counts[CALLS] for counts in found.totals().values())
