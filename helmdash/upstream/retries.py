"""When a call is tried again, and how long it waits before that."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from helmdash.upstream.failures import FailureKind

# The first wait is short, since most such errors are over at once; the last is what a person who
# waits for an answer still bears.
_FIRST_WAIT_SECONDS = 0.25
_LONGEST_WAIT_SECONDS = 8.0
# An upstream that wants to be left alone for longer is better answered for than waited for.
LONGEST_ASKED_SECONDS = 20.0
# A connection from the pool that the other side had closed shows at once. One that closes later
# has read the request, and may have charged for it.
STALE_SECONDS = 1.0

TOO_MANY = 429
_FIRST_SERVER_ERROR = 500
_NOT_IMPLEMENTED = 501

# Nothing of the request has been read by anybody then.
_BEFORE_SENDING = frozenset({FailureKind.TIMEOUT_CONNECT, FailureKind.UNREACHABLE, FailureKind.DNS})


def is_worth_another(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the same request may be answered better in a moment.

    `x-should-retry` is how OpenAI and Anthropic tell their own SDKs.
    """
    said = headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true" and status >= 400
    return status == TOO_MANY or (status >= _FIRST_SERVER_ERROR and status != _NOT_IMPLEMENTED)


def is_safe_to_repeat(kind: FailureKind, *, seconds: float) -> bool:
    """Whether a request that failed after so many seconds cannot have been worked on."""
    return kind in _BEFORE_SENDING or (kind is FailureKind.CLOSED_EARLY and seconds < STALE_SECONDS)


def wait_seconds(number: int) -> float:
    """How long to wait after the failed attempt of this number, from 1: full jitter.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    most = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** (number - 1))
    return random.uniform(0, most)  # noqa: S311 - spreads load, guards nothing


def asked_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the upstream asks us to wait; None when it does not, or not readably.

    Milliseconds in `retry-after-ms` (OpenAI, Azure), else `retry-after`, in seconds or as a date
    (RFC 9110, 10.2.3). A date is compared with the answer's own, so clocks need not agree.
    """
    in_ms = _number(headers.get("retry-after-ms"))
    if in_ms is not None:
        return in_ms / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None or said is None:
        return seconds
    until, now = _moment(said), _moment(headers.get("date"))
    return max(0.0, (until - now).total_seconds()) if until and now else None


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    if moment is not None and moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment


def _number(text: str | None) -> float | None:
    if text is None or not text.strip().replace(".", "", 1).isdecimal() or len(text) > 20:
        return None
    return float(text)
