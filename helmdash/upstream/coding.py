"""Undoing gzip and deflate, for upstreams that compress although they were asked not to."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

# A small piece may unfold to a thousand times its size: hand it out in parts of this size.
_PART_BYTES = 64 * 1024
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32  # zlib finds out which


class Unreadable(Exception):
    """The body is not in the coding that its headers say, or in one that is not known here."""


class Inflater:
    """Takes compressed bytes and gives plain ones, a bounded part at a time."""

    def __init__(self, coding: str) -> None:
        """Raises Unreadable for codings other than gzip and deflate."""
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise Unreadable(coding)
        self._zlib = zlib.decompressobj(_ZLIB_OR_GZIP)
        # Some servers send deflate without the zlib header around it.
        self._may_be_bare = coding == "deflate"

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The plain bytes of these. Raises Unreadable."""
        while data:
            part = self._inflate(data)
            if part:
                yield part
            data = self._zlib.unconsumed_tail

    def _inflate(self, data: bytes) -> bytes:
        try:
            part = self._zlib.decompress(data, _PART_BYTES)
        except zlib.error:
            if not self._may_be_bare:
                raise Unreadable("gzip or deflate") from None
            self._may_be_bare = False
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate(data)
        self._may_be_bare = False
        return part
