"""Ranges of time as people write them: `25m`, `2d`, `yesterday`, `2026-11-01..2026-11-03`.

A range begins at its first moment and ends before its last; either may be open. What names no zone
is meant in the reader's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

HOW: Final = (
    "write 25m, 24h, 7d or 2w, today, yesterday, a day such as 2026-11-01, or two with dots "
    "between: 2026-11-01..2026-11-03"
)
_MOMENT_HOW: Final = "write 30m, 24h, 7d, or a date such as 2026-09-01 or 2026-09-01T12:00Z"
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO: Final = re.compile(
    r"(?:last |past )?(\d{1,4})\s*(m|min|minutes?|h|hours?|d|days?|w|weeks?)(?: ago)?",
    re.IGNORECASE,
)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MONTH: Final = re.compile(r"(\d{4})-(\d{2})")


class BadRange(ValueError):
    """The text names no range of time; the message says how one is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """From `since` to before `until`, in UTC; None: without that bound."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def exact(self) -> str:
        """The range as text that means the same to everybody, at any time.

        >>> TimeRange(since=datetime(2026, 11, 1, 9, 30, tzinfo=UTC)).exact
        '2026-11-01T09:30Z..'
        """
        if self.since is None and self.until is None:
            return ""
        return f"{_written(self.since)}..{_written(self.until)}"


def parse_range(text: str, *, now: datetime, zone: tzinfo = UTC) -> TimeRange:
    """The range that a text names; without bounds for an empty one and `all`. A last day is part of
    its range. Raises BadRange.

    >>> day = parse_range("2026-11-01", now=datetime(2026, 11, 5, tzinfo=UTC))
    >>> day.exact
    '2026-11-01T00:00Z..2026-11-02T00:00Z'
    """
    wanted = text.strip().lower()
    if wanted in ("", "all", "all time"):
        return TimeRange()
    try:
        first, dots, last = wanted.partition("..")
        if dots:
            found = TimeRange(
                since=_first(first.strip(), now, zone), until=_end(last.strip(), now, zone)
            )
        else:
            found = _single(wanted, now, zone)
    except (ValueError, OverflowError):
        raise BadRange(HOW) from None
    if found.since is not None and found.until is not None and found.since >= found.until:
        raise BadRange("the end must be later than the beginning")
    return found


def parse_moment(text: str, *, now: datetime, zone: tzinfo = UTC) -> datetime:
    """A moment in UTC: so long ago, or a date. Raises ValueError with the fix."""
    try:
        return _moment(text.strip(), now, zone)
    except (ValueError, OverflowError):
        raise ValueError(_MOMENT_HOW) from None


def bound_text(text: str) -> str:
    """What parse_moment reads, as text of a range: a day, which is all of it there, as its
    beginning.

    >>> bound_text("2026-11-03")
    '2026-11-03T00:00'
    """
    return f"{text}T00:00" if _DAY.fullmatch(text) else text


def _single(text: str, now: datetime, zone: tzinfo) -> TimeRange:
    if (days := _days(text, now, zone)) is not None:
        first, end = days
        return TimeRange(since=_midnight(first, zone), until=_midnight(end, zone))
    return TimeRange(since=_moment(text, now, zone))


def _first(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    if text in ("", "all"):
        return None
    days = _days(text, now, zone)
    return _midnight(days[0], zone) if days is not None else _moment(text, now, zone)


def _end(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    if text in ("", "now"):
        return None
    days = _days(text, now, zone)
    return _midnight(days[1], zone) if days is not None else _moment(text, now, zone)


def _days(text: str, now: datetime, zone: tzinfo) -> tuple[date, date] | None:
    """The days that a word names: the first, and that after the last."""
    today = now.astimezone(zone).date()
    one = timedelta(days=1)
    if text == "today":
        return today, today + one
    if text == "yesterday":
        return today - one, today
    if _DAY.fullmatch(text):
        day = date.fromisoformat(text)
        return day, day + one
    if month := _MONTH.fullmatch(text):
        first = date(int(month[1]), int(month[2]), 1)
        return first, (first + 31 * one).replace(day=1)
    return None


def _moment(text: str, now: datetime, zone: tzinfo) -> datetime:
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2][0].lower()]: int(ago[1])})
    at = datetime.fromisoformat(text.upper())
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def _written(at: datetime | None) -> str:
    if at is None:
        return ""
    if at.microsecond:
        return f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at.second else f"{at:%Y-%m-%dT%H:%MZ}"
