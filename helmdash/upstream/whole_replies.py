"""A reply that came in one read, taken apart without aiohttp's parser and its stream of bytes.

Most replies that are no streams come like that from servers that say their length. Read are only
heads that can be read in one way: whatever is out of the ordinary (another version, chunks, a
length said twice, a body that is not here as a whole, bytes behind it) is the parser's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_HEAD = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9]) [ -~]*+\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)++)\r\n"
)
# What of the headers says where the body ends, and what becomes of the connection.
_TELLING = frozenset({b"content-length", b"connection", b"transfer-encoding", b"upgrade"})
_BODILESS = frozenset({204, 304})
_LONGEST_LENGTH = 9
# As the parser has it.
_MOST_HEADERS = 128


class WholeReply(NamedTuple):
    """Status, headers as they came, and the body."""

    code: int
    raw_headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def whole_reply(data: bytes, *, most_header_bytes: int) -> WholeReply | None:
    """The reply that these bytes are, from the first to the last; None: the parser has to say."""
    head = _HEAD.match(data)
    if head is None or head.end() > most_header_bytes:
        return None
    code = int(head[1])
    headers = [_header(line) for line in head[2][:-2].split(b"\r\n")]
    if code in _BODILESS or len(headers) > _MOST_HEADERS:
        return None
    if _length_of(headers) != len(data) - head.end():
        return None
    return WholeReply(code, tuple(headers), data[head.end() :])


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.strip(b" \t")


def _length_of(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The bytes of the body; None where the headers say something else of it, or say no length."""
    length: int | None = None
    for name, value in headers:
        told = name.lower()
        if told not in _TELLING:
            continue
        if told == b"content-length":
            if length is not None or not value.isdigit() or len(value) > _LONGEST_LENGTH:
                return None
            length = int(value)
        elif told != b"connection" or value.lower() != b"keep-alive":
            return None
    return length


class WholeContent:
    """A body that is here, as aiohttp's stream of bytes would give it: at its end already."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def is_eof(self) -> bool:
        """Nothing more comes."""
        return True

    def exception(self) -> BaseException | None:
        """Nothing went wrong."""
        return None

    def set_exception(self, exc: BaseException) -> None:
        """Nothing can go wrong any more."""

    def read_nowait(self) -> bytes:
        """All of it, once."""
        data, self._data = self._data, b""
        return data

    async def readany(self) -> bytes:
        """The same."""
        return self.read_nowait()

    def on_eof(self, callback: Callable[[], None]) -> None:
        """The end is here."""
        callback()
