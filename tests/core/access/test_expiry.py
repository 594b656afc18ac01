"""When a key ends: what people may write, and what they are told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from helmdash.core.access.expiry import BadExpiry, parse_expiry

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", None),
        ("  ", None),
        ("30d", "2026-12-22T12:00:00+00:00"),
        ("1 D", "2026-11-23T12:00:00+00:00"),
        ("12h", "2026-11-23T00:00:00+00:00"),
        ("2027-01-31", "2027-01-31T00:00:00+00:00"),
        ("2027-01-31T10:00:00+02:00", "2027-01-31T08:00:00+00:00"),
        ("2027-01-31T10:00:00Z", "2027-01-31T10:00:00+00:00"),
        ("2027-01-31 10:00", "2027-01-31T10:00:00+00:00"),
    ],
)
def test_spans_days_and_moments_are_understood(text: str, moment: str | None) -> None:
    found = parse_expiry(text, now=NOW)

    assert (found and found.isoformat()) == moment


@pytest.mark.parametrize(
    "text",
    [
        "never",
        "30",
        "0d",
        "-1d",
        "soon",
        "2026-11-22",
        "2026-11-22T12:00:00Z",
        "2026-13-01",
        "9999999d",
        "9999-12-31T23:59:59-14:00",
        "1.5d",
    ],
)
def test_what_names_no_moment_to_come_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(BadExpiry, match="30d"):
        parse_expiry(text, now=NOW)
