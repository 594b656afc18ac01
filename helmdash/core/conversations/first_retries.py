"""A first request that failed and comes again is one conversation: rule "first-retry-1".

Chats that begin alike are told apart by their replies (core.conversations.chains), so each first
request starts one of its own. One that got no reply has none to be told by: clients that try again
without saying so would leave a conversation for every try. So a failed first call leaves a
fingerprint of its own, and the same request joins it when all of this holds: same project, caller
and model; nearly the same size; it began after the failed one was over, and not long after. Calls
in parallel, and those that were answered, stay apart.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from helmdash.core.conversations.chains import Size

FIRST_RETRY_VERSION = "first-retry-1"

# The longest waits of SDKs and agents between two tries are a few minutes.
_LONGEST_WAIT = timedelta(minutes=10)
# Clocks and milliseconds are rounded.
_ROUNDING = timedelta(milliseconds=5)
# A try may name its number or its time somewhere in its body.
_MOST_OTHER_BYTES = 64


def failed_fingerprint(head: str) -> str:
    """What a failed first call leaves, by the fingerprint of its whole request; "" for none."""
    return f"f{head[1:]}" if head else ""


def is_same_again(
    *,
    failed: Size,
    failed_at: datetime,
    failed_ms: int | None,
    again: Size,
    again_at: datetime,
) -> bool:
    """Whether a request is the failed one once more, by its size and its time.

    `failed_ms`: how long the failed one took; None: not known, taken for no time.
    """
    over = failed_at + timedelta(milliseconds=failed_ms or 0)
    if not over - _ROUNDING <= again_at <= over + _LONGEST_WAIT:
        return False
    if failed.messages != again.messages:
        return False
    if failed.bytes is None or again.bytes is None:
        return failed.bytes == again.bytes
    return abs(failed.bytes - again.bytes) <= _MOST_OTHER_BYTES
