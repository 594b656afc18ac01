"""Server-sent events from bytes, sans I/O (WHATWG HTML, "Server-sent events", 9.2.6).

Two steps, since a gateway both reads events and hands bytes on: `SseSplitter` cuts a stream into
blocks, byte for byte, and `parse_block` reads one block. Two things differ from a browser: what
stands after the last blank line is an event too once the upstream has closed, and a block that
outgrows the limit ends the stream instead of filling the memory.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The largest block that is kept: more than any vendor puts into one event, base64 images included.
LARGEST_EVENT_BYTES = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
# A lone \r ends a line too, but not the first half of \r\n.
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LONGEST_BLANK_LINE = len(b"\r\n\r\n")


class SseEvent(NamedTuple):
    """One event. `raw` is its block as it came: its comments and the blank line included."""

    event: str
    data: bytes
    raw: bytes


class SseSplitter:
    """Cuts bytes into blocks that end with a blank line; joined, they are the stream again.

    The blocks are the same however the bytes are split. `too_long` turns true, for good, at the
    first block over `largest_bytes`: nothing more is given then, nor kept but what had come, until
    `flush`.
    """

    __slots__ = ("_largest", "_pending", "_searched", "too_long")

    def __init__(self, *, largest_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self.too_long = False
        self._largest = largest_bytes
        self._pending = bytearray()
        self._searched = 0  # bytes of pending that hold no end of a block

    def feed(self, data: bytes) -> list[bytes]:
        """The blocks these bytes complete."""
        if self.too_long:
            return []
        if not self._pending:
            # Nearly every read of a stream is one whole block, and this runs for each of them.
            is_block = data.endswith(b"\n\n") and data.find(b"\n\n") == len(data) - 2
            if is_block and b"\r" not in data and len(data) <= self._largest:
                return [data]
            return self._split(data)
        self._pending += data
        return self._split(self._pending)

    def flush(self) -> list[bytes]:
        """What is left when the stream has ended: at most one block, without its blank line."""
        rest = bytes(self._pending)
        self._keep(b"")
        return [rest] if rest else []

    def _split(self, data: bytes | bytearray) -> list[bytes]:
        blocks: list[bytes] = []
        has_cr = b"\r" in data
        start = 0
        search_from = self._searched
        while (end := _end_of_block(data, search_from, has_cr=has_cr)) > 0:
            if end - start > self._largest:
                return self._give_up(blocks, data[start:])
            blocks.append(bytes(data[start:end]))
            start = search_from = end
        if len(data) - start > self._largest:
            return self._give_up(blocks, data[start:])
        if start or data is not self._pending:
            self._pending = bytearray(data[start:])
        self._searched = max(0, len(self._pending) - _LONGEST_BLANK_LINE + 1)
        return blocks

    def _keep(self, rest: bytes | bytearray) -> None:
        self._pending = bytearray(rest)
        self._searched = 0

    def _give_up(self, blocks: list[bytes], rest: bytes | bytearray) -> list[bytes]:
        self.too_long = True
        self._keep(rest)
        return blocks


class SseDecoder:
    """Events from bytes; the same events however the bytes are split. Never raises.

    After `feed` or `flush`, `too_long` says that the stream was given up for an event over
    `largest_bytes`: the caller reports it, once.
    """

    __slots__ = ("_at_start", "_splitter")

    def __init__(self, *, largest_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._splitter = SseSplitter(largest_bytes=largest_bytes)
        self._at_start = True

    @property
    def too_long(self) -> bool:
        """Whether an event outgrew the limit; no event follows."""
        return self._splitter.too_long

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events these bytes complete."""
        events = self._parse(self._splitter.feed(data))
        if self._splitter.too_long:
            self._splitter.flush()
        return events

    def flush(self) -> list[SseEvent]:
        """The event that was left without its blank line when the stream ended, if any."""
        return self._parse(self._splitter.flush())

    def _parse(self, blocks: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for block in blocks:
            event = parse_block(block, at_start=self._at_start)
            self._at_start = False
            if event is not None:
                events.append(event)
        return events


def parse_block(raw: bytes, *, at_start: bool = False) -> SseEvent | None:
    """Read one block; None for one that holds no data (comments, an id, blank lines).

    `at_start`: it is the first of its stream, where a byte order mark is skipped.
    """
    # Nearly every block of every vendor is one line: "data: {...}\n\n".
    if raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
        return SseEvent("message", raw[6:-2], raw)
    return _parse_lines(raw.removeprefix(_BOM) if at_start else raw, raw)


def _parse_lines(text: bytes, raw: bytes) -> SseEvent | None:
    name = b""
    data: list[bytes] = []
    for line in _LINE_END.split(text):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    if not data:
        return None
    return SseEvent(name.decode("utf-8", "replace") or "message", b"\n".join(data), raw)


def _end_of_block(data: bytes | bytearray, start: int, *, has_cr: bool) -> int:
    """Where the blank line from `start` on ends; -1 where there is none, or it may go on."""
    if not has_cr:
        found = data.find(b"\n\n", start)
        return found + 2 if found >= 0 else -1
    match = _BLANK_LINE.search(data, start)
    if match is None:
        return -1
    end = match.end()
    # A \r at the very end may be the first half of \r\n.
    return -1 if end == len(data) and data[end - 1] == 0x0D else end
