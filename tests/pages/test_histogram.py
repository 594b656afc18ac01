"""Bars over time as places of a drawing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from helmdash.pages.parts.charts.histogram import Histogram, Mark, histogram
from helmdash.queries.calls.series import Bar

START = datetime(2026, 11, 1, tzinfo=UTC)
WORDS = {"critical": ("is-critical", "Critical"), "healthy": ("is-healthy", "Healthy")}


def drawn(*bars: Bar, marks: tuple[Mark, ...] = (), zone: str = "UTC") -> Histogram:
    found = histogram(bars, words=WORDS, noun="calls", zone=ZoneInfo(zone), marks=marks)
    assert found is not None
    return found


def bar(hour: int, calls: int | None, *, is_estimate: bool = False, **parts: int) -> Bar:
    since = START + timedelta(hours=hour)
    until = since + timedelta(hours=1)
    return Bar(since=since, until=until, calls=calls, parts=parts, is_estimate=is_estimate)


def test_parts_stand_on_each_other_as_high_as_they_count() -> None:
    found = drawn(bar(0, 40, critical=10, healthy=20), bar(1, 20, healthy=20))

    first, second = found.columns
    assert [part.css_class for part in first.parts] == ["is-critical", "is-healthy", "is-rest"]
    assert [part.height for part in first.parts] == [17.0, 34.0, 17.0]
    assert first.parts[0].y + first.parts[0].height == found.bottom
    assert first.parts[2].y + 17.0 == first.parts[1].y
    assert second.parts[0].height == 34.0
    assert (second.slot, second.slot_width) == (50.0, 50.0)
    # Few bars are no walls: each stands at the beginning of its time.
    assert (first.x, first.width, second.x) == (4.0, 8.0, 54.0)
    assert found.totals == (("is-critical", "Critical", 10), ("is-healthy", "Healthy", 40))


def test_a_bar_leads_to_its_time_and_says_what_it_counts() -> None:
    found = drawn(bar(0, 0), bar(1, 12, critical=2), bar(2, 1, is_estimate=True), zone="Asia/Tokyo")

    empty, full, estimate = found.columns
    assert empty.parts == ()
    assert full.range == "2026-11-01T01:00Z..2026-11-01T02:00Z"
    assert full.text == "Nov 1, 10:00 to 11:00: 12 calls · 2 critical"
    assert estimate.text == "Nov 1, 11:00 to 12:00: about 1 call"
    assert [column.is_first for column in found.columns] == [False, True, False]
    assert (found.total, found.is_whole, found.is_estimate) == (13, True, True)


def test_a_long_bar_says_its_year() -> None:
    year = Bar(since=START, until=START.replace(year=2027), calls=3)

    assert drawn(year).columns[0].text == "Nov 1 2026, 00:00 to Nov 1 2027, 00:00: 3 calls"


def test_what_is_not_counted_yet_is_unknown_and_never_zero() -> None:
    found = drawn(bar(0, None), bar(1, 3))

    assert (found.columns[0].is_known, found.columns[0].parts) == (False, ())
    assert found.columns[0].text == "Nov 1, 00:00 to 01:00: not counted yet"
    assert (found.total, found.is_whole) == (3, False)
    assert drawn(bar(0, None), bar(1, 0)).total is None
    assert drawn(bar(0, 0)).total == 0


def test_a_part_that_is_there_is_seen_beside_thousands() -> None:
    found = drawn(bar(0, 100_000, critical=1, healthy=99_999))

    assert found.columns[0].parts[0].height == 1.5


def test_marks_stand_at_their_moment_within_the_axis() -> None:
    def mark(hour: float) -> Mark:
        return Mark(at=START + timedelta(hours=hour), kind="clear", text="clear of talk")

    found = drawn(bar(0, 1), bar(1, 1), marks=(mark(-1), mark(0.5), mark(2)))

    assert [placed.x for placed in found.marks] == [25.0]


def test_nothing_is_drawn_of_nothing() -> None:
    assert histogram((), words=WORDS, noun="calls", zone=UTC) is None
