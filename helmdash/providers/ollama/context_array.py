"""The `context` of `/api/generate`: tens of thousands of token ids that hardly anybody reads.

Old clients send it back to go on with a conversation; every other reply is better without
it. All other bytes stay as they are.
"""

from __future__ import annotations

from helmdash.providers.protocols import StreamReader
from helmdash.providers.shared.bodies import without_members
from helmdash.providers.wire import Event, WireError

_NAME = "context"
_QUOTED = b'"context"'
# A line that is longer is handed on as it comes: an array of ids has no more than some megabytes.
_LONGEST_LINE = 16 * 1024 * 1024


def without_context(body: bytes) -> bytes:
    """One JSON object without its `context`; the very same bytes where there is none."""
    if _QUOTED not in body:
        return body
    found = without_members(body, (_NAME,))
    return body if found is None else found


class ContextDropper:
    """A PassThrough of Ollama's lines without their `context`.

    Whole lines are handed on, as soon as they are whole; the same however the bytes are split.
    """

    __slots__ = ("_gave_up", "_pending", "_reader")

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._pending = bytearray()
        self._gave_up = False

    def feed(self, data: bytes) -> tuple[bytes, list[Event]]:
        """The lines that these bytes complete, and their events."""
        events = self._reader.feed(data)
        if self._gave_up:
            return data, events
        end = data.rfind(b"\n") + 1
        if not end:
            self._pending += data
            return self._too_long(), events
        lines = bytes(self._pending) + data[:end]
        self._pending = bytearray(data[end:])
        return _cleaned(lines), events

    def flush(self) -> tuple[bytes, list[Event]]:
        """A last line that was left without its end."""
        rest = bytes(self._pending)
        self._pending = bytearray()
        return _cleaned(rest), self._reader.flush()

    def fail(self, error: WireError) -> bytes | None:
        """None: an error is worded alike wherever it comes."""
        return None

    def _too_long(self) -> bytes:
        if len(self._pending) <= _LONGEST_LINE:
            return b""
        self._gave_up = True
        rest, self._pending = bytes(self._pending), bytearray()
        return rest


def _cleaned(lines: bytes) -> bytes:
    if _QUOTED not in lines:
        return lines
    return b"".join(without_context(line) for line in lines.splitlines(keepends=True))
