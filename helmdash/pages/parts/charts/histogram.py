"""Bars over time, as places and sizes of an SVG. Templates only write them down.

Across in percent, so that one drawing serves every width and letters keep their size; upwards in
px. No style is set here: shapes carry classes. Each bar is a link to its own stretch of time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

from helmdash.core.text.time_ranges import TimeRange
from helmdash.pages.parts.charts.drawings import short
from helmdash.queries.calls.series import Bar

HEIGHT: Final = 92
_TOP: Final = 6.0
_BOTTOM: Final = 74.0
# Between bars, as a share of a bar's room: a hair where there are many.
_GAP: Final = 0.16
# Where there are few, a bar stands at the beginning of its room: one as wide as a page is a wall.
_MOST_WIDE: Final = 8.0
# A part of a bar that is there at all is seen.
_LEAST_PX: Final = 1.5
_MOST_LABELS: Final = 6
_DAY_S: Final = 86_400
_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a bar, by its class: where it begins (px from above) and its height."""

    css_class: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One bar. x, width: percent; range: its stretch of time, exactly; parts: none where nothing
    was, or where it is not known; is_first: the first that is a link."""

    x: float
    width: float
    slot: float
    slot_width: float
    parts: tuple[Part, ...]
    is_known: bool
    is_estimate: bool
    is_first: bool
    range: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened at a moment, besides what the bars count."""

    at: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text at a place (percent across, or px from above)."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMark:
    x: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A drawing, with its totals by word (for the legend, from below upwards) and the bounds of its
    axis (ms since 1970, for who drags over it). total: of the bars that are known; None where these
    hold nothing and others are not known."""

    columns: tuple[Column, ...]
    times: tuple[Label, ...]
    counts: tuple[Label, ...]
    marks: tuple[PlacedMark, ...]
    totals: tuple[tuple[str, str, int], ...]
    total: int | None
    first_ms: int
    end_ms: int
    is_whole: bool
    is_estimate: bool
    height: int = HEIGHT
    bottom: float = _BOTTOM


def histogram(
    bars: Sequence[Bar],
    *,
    words: Mapping[str, tuple[str, str]],
    noun: str,
    zone: tzinfo,
    marks: Sequence[Mark] = (),
) -> Histogram | None:
    """Lay bars out; None where there is none.

    words: of each part, from below upwards, its class and what it is called. What is in no part is
    drawn above them as the rest. noun: what is counted, in the plural.
    """
    if not bars:
        return None
    most = max((bar.calls or 0 for bar in bars), default=0) or 1
    first, end = bars[0].since, bars[-1].until
    room = 100 / len(bars)
    first_filled = next((bar for bar in bars if bar.calls), None)
    known = [bar for bar in bars if bar.calls is not None]
    total = sum(bar.calls or 0 for bar in known)
    is_whole = len(known) == len(bars)
    return Histogram(
        columns=tuple(
            _column(
                bar,
                at=index * room,
                room=room,
                most=most,
                words=words,
                noun=noun,
                zone=zone,
                is_first=bar is first_filled,
            )
            for index, bar in enumerate(bars)
        ),
        times=_times(bars, zone),
        counts=_counts(most),
        marks=tuple(
            PlacedMark(x=_share(mark.at, first, end), kind=mark.kind, text=mark.text)
            for mark in marks
            if first <= mark.at < end
        ),
        totals=tuple(
            (css_class, name, sum(bar.parts.get(word, 0) for bar in known))
            for word, (css_class, name) in words.items()
        ),
        total=total if total or is_whole else None,
        first_ms=_ms(first),
        end_ms=_ms(end),
        is_whole=is_whole,
        is_estimate=any(bar.is_estimate for bar in bars),
    )


def _column(
    bar: Bar,
    *,
    at: float,
    room: float,
    most: int,
    words: Mapping[str, tuple[str, str]],
    noun: str,
    zone: tzinfo,
    is_first: bool,
) -> Column:
    gap = room * _GAP
    return Column(
        x=round(at + gap / 2, 3),
        width=round(min(room - gap, _MOST_WIDE), 3),
        slot=round(at, 3),
        slot_width=round(room, 3),
        parts=_parts(bar, most, words),
        is_known=bar.calls is not None,
        is_estimate=bar.is_estimate,
        is_first=is_first,
        range=TimeRange(since=bar.since, until=bar.until).exact,
        text=_text(bar, words, noun, zone),
    )


def _parts(bar: Bar, most: int, words: Mapping[str, tuple[str, str]]) -> tuple[Part, ...]:
    counts = [(css_class, bar.parts.get(word, 0)) for word, (css_class, _) in words.items()]
    counts.append(("is-rest", (bar.calls or 0) - sum(count for _, count in counts)))
    found: list[Part] = []
    y = _BOTTOM
    for css_class, count in counts:
        if count > 0:
            height = max((_BOTTOM - _TOP) * count / most, _LEAST_PX)
            y -= height
            found.append(Part(css_class=css_class, y=round(y, 1), height=round(height, 1)))
    return tuple(found)


def _text(bar: Bar, words: Mapping[str, tuple[str, str]], noun: str, zone: tzinfo) -> str:
    begins, ends = bar.since.astimezone(zone), bar.until.astimezone(zone)
    same_day = begins.date() == ends.date()
    # Weeks, months and years begin on one day of many years.
    form = "%b %-d %Y, %H:%M" if bar.until - bar.since >= _WEEK else "%b %-d, %H:%M"
    when = f"{begins:{form}} to {ends:{'%H:%M' if same_day else form}}"
    if bar.calls is None:
        return f"{when}: not counted yet"
    told = [
        f"{bar.parts[word]:,} {name.lower()}"
        for word, (_, name) in reversed(tuple(words.items()))
        if bar.parts.get(word)
    ]
    counted = noun.removesuffix("s") if bar.calls == 1 else noun
    about = "about " if bar.is_estimate else ""
    return " · ".join([f"{when}: {about}{bar.calls:,} {counted}", *told])


def _times(bars: Sequence[Bar], zone: tzinfo) -> tuple[Label, ...]:
    """Where the axis is named: at the beginning of bars, evenly apart, none at the right edge."""
    step = -(-len(bars) // _MOST_LABELS)
    span_s = (bars[-1].until - bars[0].since).total_seconds()
    form = "%H:%M" if span_s <= _DAY_S else "%b %-d, %H:%M" if span_s <= 3 * _DAY_S else "%b %-d"
    if span_s > 400 * _DAY_S:
        form = "%b %Y"
    return tuple(
        Label(
            at=round(100 * index / len(bars), 2),
            text=f"{bars[index].since.astimezone(zone):{form}}",
        )
        for index in range(0, len(bars), step)
        if index <= len(bars) * 0.93
    )


def _counts(most: int) -> tuple[Label, ...]:
    """The highest bar's number, and half of it where that is a whole one to read."""
    found = [Label(at=_TOP, text=short(most))]
    if most >= 4:
        half = most // 2
        found.append(Label(at=round(_BOTTOM - (_BOTTOM - _TOP) * half / most, 1), text=short(half)))
    return tuple(found)


def _share(at: datetime, first: datetime, end: datetime) -> float:
    return round(100 * (at - first) / (end - first), 2)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
