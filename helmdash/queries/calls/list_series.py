"""The rows of a list over time, in bars, where no rollups tell them: conversations, fits, and plans
under filters that rollups do not carry. The newest are counted, up to a stated number: as they are
read, or by the database."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, Protocol

from helmdash.core.rollups.figures import CALLS, Marginal
from helmdash.core.rollups.periods import bars, moment_of
from helmdash.queries import rollups
from helmdash.queries.calls.series import (
    MOST_BARS,
    Bar,
    Moment,
    Series,
    bounds,
    count_rows,
    estimate_before,
    series,
)

# Rows that are read for a drawing which is made anew with each call that comes in: some ten
# milliseconds.
MOST_LISTED: Final = 5_000


class Countable(Protocol):
    """The newest rows of a list that fit. read_from: rows of before were not looked at; None: these
    are all. most: so many are counted at most."""

    @property
    def read_from(self) -> datetime | None: ...
    @property
    def most(self) -> int: ...
    @property
    def has_none(self) -> bool:
        """Whether none fits of those that were looked at."""
        ...

    def first_at(self) -> datetime | None:
        """When the oldest of them was; None where there is none."""
        ...

    def count(self, bars: Sequence[Bar]) -> tuple[tuple[Bar, ...], Counter[str | None]]:
        """As queries.calls.series.count_rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """Rows that were read (Countable), newest first."""

    rows: Sequence[Moment]
    read_from: datetime | None = None

    @property
    def most(self) -> int:
        return MOST_LISTED

    @property
    def has_none(self) -> bool:
        return not self.rows

    def first_at(self) -> datetime | None:
        return self.rows[-1][0] if self.rows else None

    def count(self, bars: Sequence[Bar]) -> tuple[tuple[Bar, ...], Counter[str | None]]:
        return count_rows(bars, self.rows)


def newest(found: Sequence[Moment], *, read_from: datetime | None = None) -> Newest:
    """Of MOST_LISTED rows and one more, where there are more. read_from: rows of before were not
    asked for."""
    if len(found) <= MOST_LISTED:
        return Newest(rows=found, read_from=read_from)
    return Newest(rows=found[:MOST_LISTED], read_from=found[MOST_LISTED][0])


def list_series(
    found: Countable,
    *,
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    first_at: Callable[[], datetime | None],
) -> Series:
    """Bars of a list's rows over its range; without `since` from the first of them on.

    Where not all rows were counted, bars before are estimates, by how many rows came to a call
    among those that were. first_at finds when the oldest was; it is asked only then. No query but
    those of `found` where all rows were counted, else at most six and that of `first_at`.
    """
    read_from = found.read_from
    if read_from and found.has_none:
        # Of those that were looked at none fits: no share of what is before says anything.
        return Series(bars=(), is_behind=False)
    start = since or (first_at() if read_from else found.first_at())
    if start is None:
        return Series(bars=(), is_behind=False)
    exact, seen = found.count(_empty(start, until, now))
    if read_from is None or not exact:
        return Series(bars=exact, is_behind=False)
    calls = series(project_id=project_id, since=start, until=until, now=now, split=None)
    whole = bisect_right([bar.since for bar in exact], read_from)
    counted = _in_all(exact[whole:])
    base = _calls_in_all(calls.bars[whole:])
    if counted.total() * 2 >= seen.total():
        # Enough to tell how many rows there are to a call; the calls of these bars are known.
        seen = counted
    else:
        base = _calls_since(read_from, project_id, exact[-1].until)
    estimated = estimate_before(read_from, exact, calls.bars, seen, base)
    return Series(bars=estimated, is_behind=calls.is_behind)


def _in_all(exact: Sequence[Bar]) -> Counter[str | None]:
    """How many rows of each word some bars hold together."""
    told: Counter[str | None] = Counter()
    for bar in exact:
        told.update(bar.parts)
        told[None] += (bar.calls or 0) - sum(bar.parts.values())
    return told


def _calls_in_all(bars: Sequence[Bar]) -> int:
    """The calls of some bars; 0 where they are not all known."""
    return 0 if any(bar.calls is None for bar in bars) else sum(bar.calls or 0 for bar in bars)


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
