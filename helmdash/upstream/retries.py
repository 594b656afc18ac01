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
TOO_MANY = 429
_FIRST_SERVER_ERROR = 500
# A server that cannot do it will not be able to in a moment. And a proxy that gave up waiting knows
# nothing of the model behind it, which may be working, and charging (524 is Cloudflare's).
_NOT_AGAIN = frozenset({501, 504, 524})

# Nothing of the request has been read by anybody then.
_BEFORE_SENDING = frozenset({FailureKind.TIMEOUT_CONNECT, FailureKind.UNREACHABLE, FailureKind.DNS})


def is_worth_another(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the same request may be answered better in a moment.

    `x-should-retry` is how OpenAI and Anthropic tell their own SDKs.
    """
    said = headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true" and status >= 400
    return status == TOO_MANY or (status >= _FIRST_SERVER_ERROR and status not in _NOT_AGAIN)


def is_safe_to_repeat(kind: FailureKind, *, is_post: bool) -> bool:
    """Whether a request that failed like this can be sent again without being done twice.

    A request to a model that may have been read is not, however soon the connection broke: that of
    a pool that the other side closed at the same moment looks no different from one on which the
    request was read, worked on and charged for (RFC 9110, 9.2.2). `transport` sees to it that such
    a connection is hardly ever met.
    """
    return kind in _BEFORE_SENDING or (kind is FailureKind.CLOSED_EARLY and not is_post)


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
