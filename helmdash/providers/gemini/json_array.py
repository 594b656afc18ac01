"""The objects of a JSON array from bytes, sans I/O: Gemini's streams without `?alt=sse`.

Also reads objects that stand alone or one after the other. Only braces and strings are looked at;
whether an object is sound is for its reader to say.
"""

from __future__ import annotations

import re

from helmdash.providers.shared.sse import LARGEST_EVENT_BYTES

_BETWEEN = re.compile(rb"[^\s,\[\]]")
_BRACE_OR_QUOTE = re.compile(rb'["{}]')
_END_OR_ESCAPE = re.compile(rb'"|\\', re.DOTALL)
_QUOTE, _BACKSLASH, _OPEN = b'"'[0], b"\\"[0], b"{"[0]


class ObjectDecoder:
    """Objects from bytes; the same however the bytes are split. Never raises.

    `is_broken` turns true, for good, at anything between the objects that is none, and at the
    first object over `largest_bytes`; nothing more is given or kept then.
    """

    __slots__ = ("_at", "_depth", "_in_string", "_largest", "_pending", "_start", "is_broken")

    def __init__(self, *, largest_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self.is_broken = False
        self._largest = largest_bytes
        self._pending = bytearray()
        self._start = 0  # where the open object begins
        self._at = 0  # how far pending has been looked at
        self._depth = 0
        self._in_string = False

    def feed(self, data: bytes) -> list[bytes]:
        """The objects these bytes complete."""
        if self.is_broken:
            return []
        self._pending += data
        found: list[bytes] = []
        while self._find_start() and self._find_end():
            found.append(bytes(self._pending[self._start : self._at]))
            if len(found[-1]) > self._largest:
                found.pop()
                self._give_up()
        self._forget()
        return found

    def flush(self) -> bytes:
        """What is left of an object that never closed."""
        return bytes(self._pending[self._start :]) if self._depth else b""

    def _find_start(self) -> bool:
        if self._depth:
            return True
        match = _BETWEEN.search(self._pending, self._at)
        if match is None:
            self._at = self._start = len(self._pending)
            return False
        if self._pending[match.start()] != _OPEN:
            self._give_up()
            return False
        self._start = match.start()
        self._at = match.end()
        self._depth = 1
        return True

    def _find_end(self) -> bool:
        while self._depth:
            pattern = _END_OR_ESCAPE if self._in_string else _BRACE_OR_QUOTE
            match = pattern.search(self._pending, self._at)
            if match is None:
                self._at = len(self._pending)
                return False
            char = self._pending[match.start()]
            if char == _BACKSLASH:
                if match.end() == len(self._pending):
                    self._at = match.start()  # what it escapes has not come yet
                    return False
                self._at = match.end() + 1
                continue
            self._at = match.end()
            if char == _QUOTE:
                self._in_string = not self._in_string
            else:
                self._depth += 1 if char == _OPEN else -1
        return True

    def _forget(self) -> None:
        if len(self._pending) - self._start > self._largest:
            self._give_up()
        del self._pending[: self._start if self._depth else self._at]
        self._at -= self._start if self._depth else self._at
        self._start = 0

    def _give_up(self) -> None:
        self.is_broken = True
        self._pending.clear()
        self._start = self._at = self._depth = 0
