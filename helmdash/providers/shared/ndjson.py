"""Newline-delimited JSON from bytes, sans I/O: one value a line (Ollama's streams).

Lines are given as bytes; reading the JSON is the format's own matter. Blank lines are keep-alives
and are left out.
"""

from __future__ import annotations

# The largest line that is kept; the same limit, for the same reason, as for an SSE event.
LARGEST_LINE_BYTES = 16 * 1024 * 1024


class NdjsonDecoder:
    """Lines from bytes, without their line ends; the same however the bytes are split.

    `too_long` turns true, for good, at the first line over `largest_bytes`; nothing more is given
    or kept then, and the caller reports it, once. Never raises.
    """

    __slots__ = ("_largest", "_pending", "_searched", "too_long")

    def __init__(self, *, largest_bytes: int = LARGEST_LINE_BYTES) -> None:
        self.too_long = False
        self._largest = largest_bytes
        self._pending = bytearray()
        self._searched = 0  # bytes of pending that hold no line end

    def feed(self, data: bytes) -> list[bytes]:
        """The lines these bytes complete."""
        if self.too_long:
            return []
        if not self._pending:
            return self._split(data)
        self._pending += data
        return self._split(self._pending)

    def flush(self) -> list[bytes]:
        """The line that was left without its end when the stream ended, if any."""
        rest = bytes(self._pending).strip()
        self._pending = bytearray()
        self._searched = 0
        return [rest] if rest else []

    def _split(self, data: bytes | bytearray) -> list[bytes]:
        lines: list[bytes] = []
        start = 0
        search_from = self._searched
        while (end := data.find(b"\n", search_from)) >= 0:
            if end - start > self._largest:
                return self._give_up(lines)
            if line := bytes(data[start:end]).strip():
                lines.append(line)
            start = search_from = end + 1
        if len(data) - start > self._largest:
            return self._give_up(lines)
        if start or data is not self._pending:
            self._pending = bytearray(data[start:])
        self._searched = len(self._pending)
        return lines

    def _give_up(self, lines: list[bytes]) -> list[bytes]:
        self.too_long = True
        self._pending = bytearray()
        self._searched = 0
        return lines
