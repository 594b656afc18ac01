"""A body that came instead of a stream: an error as JSON, or a whole reply."""

from __future__ import annotations

from dataclasses import replace

from helmdash.providers.anthropic.reply import read_reply
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    UNDECODABLE_STREAM,
    ChatRequest,
    Event,
)

_BOM = b"\xef\xbb\xbf"
_LONGEST_BEGINNING = 1024  # bytes of white space before JSON; nobody sends any


def read_unstreamed(body: bytes, *, request: ChatRequest) -> list[Event]:
    """The events of a whole body; none of an empty one. Never raises."""
    body = body.removeprefix(_BOM).strip()
    if not body:
        return []
    reply = read_reply(body, request=request)
    if reply.error is not None and reply.error.code == UNDECODABLE_REPLY:
        reply = replace(reply, error=replace(reply.error, code=UNDECODABLE_STREAM))
    return events_of(reply)


def begins_like_json(data: bytes | bytearray) -> bool | None:
    """Whether a body begins like a JSON object; None where it has not begun."""
    if _BOM.startswith(data):
        return None
    start = data[:_LONGEST_BEGINNING].removeprefix(_BOM).lstrip(b" \t\r\n")
    if not start and len(data) < _LONGEST_BEGINNING:
        return None
    return start.startswith(b"{")
