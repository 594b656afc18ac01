"""Stretches of time that rollups are kept for, as numbers: in UTC, counted from 1970.

A quarter-hour is the unit; a month is counted as year * 12 + month - 1, the others from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, timedelta
from enum import IntEnum
from itertools import pairwise
from typing import Final

QUARTER_SECONDS: Final = 900
_HOUR, _DAY = 4, 96  # in quarter-hours
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_QUARTER: Final = timedelta(seconds=QUARTER_SECONDS)


class Width(IntEnum):
    """How long a period is; the month is there so that a year is read like a day."""

    QUARTER = 0
    HOUR = 1
    DAY = 2
    MONTH = 3


@dataclass(frozen=True, slots=True)
class Span:
    """Periods of one width, from `first` to before `end`; None: without a bound on that side."""

    width: Width
    first: int | None
    end: int | None


def quarter_of(moment: datetime) -> int:
    """The quarter-hour that holds a moment."""
    return (moment - _EPOCH) // _QUARTER


def moment_of(quarter: int) -> datetime:
    """When a quarter-hour begins; the last moment of all where it is after the year 9999."""
    try:
        return _EPOCH + quarter * _QUARTER
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def period_of(width: Width, quarter: int) -> int:
    """The period of a width that holds a quarter-hour."""
    return _PERIOD_OF[width](quarter)


def first_quarter(width: Width, number: int) -> int:
    """The quarter-hour that a period begins with."""
    return _FIRST_QUARTER[width](number)


def cover(first: int | None, end: int | None) -> tuple[Span, ...]:
    """The fewest periods that make up the quarter-hours from `first` to before `end`.

    None: without a bound on that side. At most 6 quarter-hours, 46 hours and 60 days, and months.
    """
    if first is not None and end is not None and first >= end:
        return ()
    spans: list[Span] = []
    for width, coarser in pairwise(Width):
        up = None if first is None else _ceil(coarser, first)
        down = None if end is None else _floor(coarser, end)
        if up is not None and down is not None and up >= down:
            return (*spans, _span(width, first, end))
        if first != up:
            spans.append(_span(width, first, up))
        if end != down:
            spans.append(_span(width, down, end))
        first, end = up, down
    return (*spans, _span(Width.MONTH, first, end))


def bars(first: int, end: int, *, most: int) -> tuple[Width, tuple[int, ...]]:
    """The narrowest bars, at most so many, that the quarter-hours from `first` to before `end` lie
    in: the periods that make them up, and the quarter-hours that they begin with, and where the
    last one ends. They begin where days, weeks (Mondays), quarters and years do."""
    kinds = [
        (width, _edges(width, periods, offset, first, end)) for width, periods, offset in _BARS
    ]
    fitting = (kind for kind in kinds if len(kind[1]) <= most + 1)
    width, edges = next(fitting, kinds[-1])
    return width, tuple(first_quarter(width, each) for each in edges[-most - 1 :])


def _edges(width: Width, periods: int, offset: int, first: int, end: int) -> range:
    """The periods that bars of so many of them begin with, and that after the last bar."""
    start = (period_of(width, first) - offset) // periods
    stop = (period_of(width, max(end - 1, first)) - offset) // periods + 1
    return range(start * periods + offset, stop * periods + offset + 1, periods)


# How many periods of which width make up a bar, and one that a bar begins with: the fourth day
# after the first of 1970 is a Monday. Twelve at most, for a reader reads them all.
_BARS: Final = (
    (Width.QUARTER, 1, 0),
    (Width.HOUR, 1, 0),
    (Width.HOUR, 3, 0),
    (Width.HOUR, 12, 0),
    (Width.DAY, 1, 0),
    (Width.DAY, 7, 4),
    (Width.MONTH, 1, 0),
    (Width.MONTH, 3, 0),
    (Width.MONTH, 12, 0),
)


def _floor(width: Width, quarter: int) -> int:
    """The last quarter-hour at or before this one that a period begins with."""
    return first_quarter(width, period_of(width, quarter))


def _ceil(width: Width, quarter: int) -> int:
    """The first one at or after it."""
    start = _floor(width, quarter)
    return start if start == quarter else first_quarter(width, period_of(width, quarter) + 1)


def _span(width: Width, first: int | None, end: int | None) -> Span:
    """Both bounds are boundaries of the width."""
    return Span(
        width,
        None if first is None else period_of(width, first),
        None if end is None else period_of(width, end),
    )


def _month_of(quarter: int) -> int:
    ordinal = quarter // _DAY + _FIRST_DAY
    if ordinal > date.max.toordinal():
        return (MAXYEAR + 1) * 12
    day = date.fromordinal(ordinal)
    return day.year * 12 + day.month - 1


def _first_of_month(number: int) -> int:
    year, month = divmod(number, 12)
    # After the last month that has a date, which ends where the first of the next one would be.
    day = date(year, month + 1, 1).toordinal() if year <= MAXYEAR else date.max.toordinal() + 1
    return (day - _FIRST_DAY) * _DAY


_PERIOD_OF: Final[tuple[Callable[[int], int], ...]] = (
    lambda quarter: quarter,
    lambda quarter: quarter // _HOUR,
    lambda quarter: quarter // _DAY,
    _month_of,
)
_FIRST_QUARTER: Final[tuple[Callable[[int], int], ...]] = (
    lambda number: number,
    lambda number: number * _HOUR,
    lambda number: number * _DAY,
    _first_of_month,
)
