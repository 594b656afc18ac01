"""When a key ends, as people say it: `30d`, `12h`, a day, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

HOW = "say 30d, 12h, a day such as 2027-01-31 (from its beginning in UTC), or a full time"

_SPAN = re.compile(r"([0-9]{1,5})\s*([dh])")
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1)}


class BadExpiry(ValueError):
    """The text names no moment to come; the message says what to write."""


def parse_expiry(text: str, *, now: datetime) -> datetime | None:
    """The moment a key ends; None for an empty text: never. Raises BadExpiry.

    >>> parse_expiry("30d", now=datetime(2026, 11, 22, tzinfo=UTC)).isoformat()
    '2026-12-22T00:00:00+00:00'
    """
    text = text.strip()
    if not text:
        return None
    span = _SPAN.fullmatch(text.lower())
    moment = now + int(span[1]) * _UNITS[span[2]] if span else _moment(text)
    if moment <= now:
        raise BadExpiry(f"{text!r} is not in the future; {HOW}")
    return moment


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadExpiry(f"{text[:40]!r} is no time; {HOW}") from None
