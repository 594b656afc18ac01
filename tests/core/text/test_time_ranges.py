"""Ranges of time as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from helmdash.core.text.time_ranges import BadRange, parse_range

# A Thursday; in Berlin it is 00:30 of the next day.
NOW = datetime(2026, 11, 5, 23, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")

UTC_RANGES = [
    ("", ""),
    ("all", ""),
    ("25m", "2026-11-05T23:05Z.."),
    ("2d", "2026-11-03T23:30Z.."),
    ("Last 3 hours", "2026-11-05T20:30Z.."),
    ("1w", "2026-10-29T23:30Z.."),
    ("today", "2026-11-05T00:00Z..2026-11-06T00:00Z"),
    ("yesterday", "2026-11-04T00:00Z..2026-11-05T00:00Z"),
    ("2026-11-01", "2026-11-01T00:00Z..2026-11-02T00:00Z"),
    ("2026-12", "2026-12-01T00:00Z..2027-01-01T00:00Z"),
    # A last day is part of the range.
    ("2026-11-01..2026-11-03", "2026-11-01T00:00Z..2026-11-04T00:00Z"),
    ("2026-11-01 .. now", "2026-11-01T00:00Z.."),
    ("..2026-11-03", "..2026-11-04T00:00Z"),
    ("7d..2d", "2026-10-29T23:30Z..2026-11-03T23:30Z"),
    ("2026-11-01T09:30Z..2026-11-01T10:00:05Z", "2026-11-01T09:30Z..2026-11-01T10:00:05Z"),
    ("2026-11-01T09:30+02:00..", "2026-11-01T07:30Z.."),
]


@pytest.mark.parametrize(("text", "exact"), UTC_RANGES)
def test_a_range_is_read_and_written_exactly(text: str, exact: str) -> None:
    found = parse_range(text, now=NOW)

    assert found.exact == exact
    # What is written means the same later, and elsewhere.
    assert parse_range(found.exact, now=NOW.replace(year=2031), zone=BERLIN) == found


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("today", "2026-11-05T23:00Z..2026-11-06T23:00Z"),
        # Summer time ends within it: a day of 25 hours.
        ("2026-10-25", "2026-10-24T22:00Z..2026-10-25T23:00Z"),
        ("2026-11-01T09:30..", "2026-11-01T08:30Z.."),
    ],
)
def test_what_names_no_zone_is_the_readers(text: str, exact: str) -> None:
    assert parse_range(text, now=NOW, zone=BERLIN).exact == exact


@pytest.mark.parametrize(
    "text",
    ["banana", "5", "-3h", "99999w", "2026-13-01", "0001-01-01T00:00+14:00", "1h..2h", "a..b..c"],
)
def test_anything_else_is_answered_with_the_ways_to_write_it(text: str) -> None:
    with pytest.raises(BadRange, match=r"write 25m|the end must be later"):
        parse_range(text, now=NOW)
