"""How many calls there were over time, in bars: what the histograms above lists are drawn from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Final

from django.db.models import Min

from helmdash.core.rollups.figures import CALLS, Counts, Marginal, add, tally, under
from helmdash.core.rollups.periods import (
    Span,
    Width,
    bars,
    first_quarter,
    moment_of,
    period_of,
    quarter_of,
)
from helmdash.queries.rollups import MOST_UNCOUNTED
from helmdash.records.models import Call, Rollup, RollupState
from helmdash.records.rollup_rows import read_spans

# A bar of ten pixels on a wide screen.
MOST_BARS: Final = 120
_NEVER: Final = 2**62


class Split(StrEnum):
    """What the calls of a bar are told apart by: the heads of core.rollups.figures."""

    OUTCOME = "o"
    LEVEL = "l"
    CAUSE = "c"
    FINISH_REASON = "f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """One marginal's calls with one of some words: clients by name, models by their keys
    (queries.distinct_values.model_keys), and so on. words: None: all of them."""

    marginal: Marginal
    words: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Calls that started from `since` to before `until`.

    calls: None where they are not known. parts: of these how many by word of the split; calls
    without such a word (a cause) are in no part.
    """

    since: datetime
    until: datetime
    calls: int | None
    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Bars of equal width (but for months), oldest first, without a gap; the first and the last
    reach over the range where it does not begin or end with them.

    is_behind: the newest calls are not added up yet. is_whole: no bar is unknown.
    """

    bars: tuple[Bar, ...]
    is_behind: bool

    @property
    def is_whole(self) -> bool:
        return all(bar.calls is not None for bar in self.bars)


def series(
    *,
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    split: Split,
    only: Only | None = None,
) -> Series:
    """At most MOST_BARS bars of calls, from quarter-hours to years wide, that fill a range: exact,
    from rollups. Two queries, two more without `since`.

    since, until: None: from the first call on, up to now. only: calls of one marginal's words; a
    filter that is no marginal has no series here. No bars where the range is empty or the project
    has no calls.
    """
    start = _first_quarter(project_id) if since is None else quarter_of(since)
    end = quarter_of(now) + 1 if until is None else _end_of(until)
    if start is None or start >= end:
        return Series(bars=(), is_behind=False)
    width, edges = bars(start, end, most=MOST_BARS)
    counts, is_behind = _counts(project_id, width, edges, only or Only(marginal=Marginal.ALL))
    known_from = _known_from(project_id)
    return Series(
        bars=tuple(
            _bar(first, after, told if known_from is None or first >= known_from else None, split)
            for (first, after), told in zip(pairwise(edges), counts, strict=True)
        ),
        is_behind=is_behind,
    )


def _first_quarter(project_id: int) -> int | None:
    """A quarter-hour at or before the project's first call; None where it has none."""
    first = Call.objects.filter(project_id=project_id).aggregate(at=Min("started_at"))["at"]
    rows = Rollup.objects.filter(project_id=project_id, marginal=Marginal.ALL.value)
    day = rows.filter(width=Width.DAY.value).aggregate(first=Min("period"))["first"]
    found = [] if first is None else [quarter_of(first)]
    return min(found if day is None else [*found, first_quarter(Width.DAY, day)], default=None)


def _end_of(moment: datetime) -> int:
    """The first quarter-hour that begins at a moment or later."""
    quarter = quarter_of(moment)
    return quarter + (moment > moment_of(quarter))


def _known_from(project_id: int) -> int | None:
    """The quarter-hour from which on all calls are in the rollups; None: always.

    Calls from before there were rollups are counted from the newest day back.
    """
    state = RollupState.objects.filter(project_id=project_id, is_complete=False).first()
    if state is None:
        return None
    return _NEVER if state.rebuilt_down_to is None else state.rebuilt_down_to


def _counts(
    project_id: int, width: Width, edges: Sequence[int], only: Only
) -> tuple[list[Counts], bool]:
    """The figures of each bar, and whether more waits to be counted than was read."""
    stored = read_spans(
        project_id=project_id,
        marginal=only.marginal,
        spans=[Span(width, period_of(width, edges[0]), period_of(width, edges[-1]))],
        most_uncounted=MOST_UNCOUNTED,
        words=only.words,
    )
    found: list[Counts] = [{} for _ in edges[1:]]
    for rows in stored.figures.values():
        for _, period, counts in rows:
            add(found[bisect_right(edges, first_quarter(width, period)) - 1], counts)
    for (quarter, _, key), counts in tally(stored.uncounted, only=only.marginal).items():
        if edges[0] <= quarter < edges[-1] and (only.words is None or key[0] in only.words):
            add(found[bisect_right(edges, quarter) - 1], counts)
    return found, stored.is_behind


def _bar(first: int, after: int, counts: Counts | None, split: Split) -> Bar:
    return Bar(
        since=moment_of(first),
        until=moment_of(after),
        calls=None if counts is None else counts.get(CALLS, 0),
        parts={} if counts is None else under(counts, split),
    )
