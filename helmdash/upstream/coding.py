"""Undoing gzip and deflate, for upstreams that compress although they were asked not to."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

# A small piece may unfold to a thousand times its size: hand it out in parts of this size.
_PART_BYTES = 64 * 1024
# What follows a member is copied at its end, so no more is given at once.
_SLICE_BYTES = 16 * 1024
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32  # zlib finds out which
_GZIP_BEGINS = b"\x1f"
_HEADER_BYTES = 2  # of zlib's, which are wrong or right together
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
# Of the codings in IANA's register, those that are not undone here. What is in neither set is no
# coding: some servers write the charset there, or "none", and clients read the body as it is.
_UNKNOWN = frozenset(
    {"aes128gcm", "br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress", "zstd"}
)
# Two have been seen; more are somebody's joke.
_MOST_CODINGS = 4


class Unreadable(Exception):
    """The body is not in the coding that its headers say, or in one that is not known here."""


class Inflater:
    """Takes compressed bytes and gives plain ones, a bounded part at a time."""

    def __init__(self, codings: str) -> None:
        """codings: as Content-Encoding names them, in the order in which they were applied.

        Raises Unreadable for others than gzip and deflate.
        """
        names = [name.strip().lower() for name in codings.split(",")]
        applied = [name for name in names if name in _KNOWN]
        if len(applied) > _MOST_CODINGS or not _UNKNOWN.isdisjoint(names):
            raise Unreadable(codings)
        self._stages = [_Stage(name) for name in reversed(applied)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes of these. Raises Unreadable."""
        return _unfolded(self._stages, data)


def _unfolded(stages: Sequence[_Stage], data: bytes) -> Iterator[bytes]:
    if not stages:
        yield data
        return
    for part in stages[0].feed(data):
        yield from _unfolded(stages[1:], part)


class _Stage:
    """One coding. A gzip may have several members; what follows the last one is not of it."""

    def __init__(self, coding: str) -> None:
        self._zlib = zlib.decompressobj(_ZLIB_OR_GZIP)
        # Some servers send deflate without the zlib header around it.
        self._may_be_bare = coding == "deflate"
        self._head = b""
        self._has_ended_once = False
        self._has_given = False  # of the member that is read
        self._is_over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _SLICE_BYTES):
            yield from self._feed_slice(data[start : start + _SLICE_BYTES])

    def _feed_slice(self, data: bytes) -> Iterator[bytes]:
        # A full part may have left some bytes inside, with nothing more to be fed.
        is_full = False
        while (data or is_full) and not self._is_over:
            part, data = self._step(data)
            is_full = len(part) == _PART_BYTES and not self._zlib.eof
            if part:
                yield part

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Some plain bytes, and what is to be fed next."""
        if self._zlib.eof:
            self._begin_member(data)
        part = b"" if self._is_over else self._inflate(data)
        self._has_given = self._has_given or part != b""
        return part, self._zlib.unused_data or self._zlib.unconsumed_tail

    def _begin_member(self, data: bytes) -> None:
        self._is_over = not data.startswith(_GZIP_BEGINS)
        self._zlib = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._has_ended_once, self._has_given = True, False

    def _inflate(self, data: bytes) -> bytes:
        data, self._head = self._head + data, b""
        if self._may_be_bare and len(data) < _HEADER_BYTES:
            self._head = data
            return b""
        try:
            part = self._zlib.decompress(data, _PART_BYTES)
        except zlib.error:
            if self._has_ended_once and not self._has_given:
                self._is_over = True  # it only began like a member
                return b""
            if not self._may_be_bare:
                raise Unreadable("gzip or deflate") from None
            self._may_be_bare = False
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate(data)
        self._may_be_bare = False
        return part
