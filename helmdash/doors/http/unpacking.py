"""Bodies that come packed: unpacked in steps, within a bound and the memory that all bodies share.

A few kilobytes can say gigabytes, so nothing is unpacked further than there is room for.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from helmdash.doors.body import Bodies
from helmdash.doors.faults import BodyNotUnpacked, BodyTooLarge, UnpackingTooSlow

# zlib's window size, with 16 for gzip's own frame; a negative one is for no frame at all.
_GZIP = 16 + zlib.MAX_WBITS
# The memory that a zstd may ask for: what decoders are to have at least (RFC 8878, 3.1.1.1.2).
_ZSTD_WINDOW_LOG = 23
# Unpacking so much takes some 10 ms.
_STEP_BYTES = 4 * 1024 * 1024
# What follows a member is copied at its end, so no more is given at once.
_SLICE_BYTES = 256 * 1024
# Writers that flush by members make some; each costs a step.
_MOST_MEMBERS = 100
# 64 MiB take less than a second on a machine that is not overrun.
_MOST_S = 30.0


class Coding(StrEnum):
    """How a body may be packed."""

    GZIP = "gzip"
    DEFLATE = "deflate"
    ZSTD = "zstd"


_BY_NAME = {"x-gzip": Coding.GZIP, **{coding.value: coding for coding in Coding}}


def coding_of(headers: Mapping[bytes, bytes]) -> Coding | None:
    """By the Content-Encoding; None for any other, and for several."""
    name = headers.get(b"content-encoding", b"").strip().lower()
    return _BY_NAME.get(name.decode("latin-1"))


def is_small_unpacked(body: bytes, most_bytes: int) -> bool:
    """Whether a gzip says at most so many bytes, in one member; unpacks one more at most."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        size = len(unpacker.decompress(body, most_bytes + 1))
    except zlib.error:
        return True  # told so right away
    return size <= most_bytes and not unpacker.unused_data


@asynccontextmanager
async def unpacking(
    bodies: Bodies,
    body: bytes,
    *,
    coding: Coding,
    owner: str,
    most_bytes: int,
    is_set: bool = False,
) -> AsyncIterator[bytes]:
    """The unpacked body for the length of a block.

    most_bytes: of the unpacked one; is_set: by HELMDASH_MAX_BODY_BYTES. Packed and unpacked
    together have to fit into a caller's share, since both are held. Raises BodyNotUnpacked,
    BodyTooLarge and BodiesFull; UnpackingTooSlow where the machine takes too long.
    """
    room = min(most_bytes, max(bodies.share_bytes - len(body), 0))
    pieces: list[bytes] = []
    held, members = 0, _Members(body, coding)
    try:
        try:
            async with asyncio.timeout(_MOST_S):
                while not members.is_done:
                    step = min(_STEP_BYTES, room - held + 1)
                    piece = await asyncio.to_thread(members.next_piece, step)
                    if held + len(piece) > room:
                        raise BodyTooLarge(min(most_bytes, bodies.share_bytes), is_set=is_set)
                    bodies.hold(len(piece), owner=owner)
                    held += len(piece)
                    pieces.append(piece)
        except TimeoutError:
            raise UnpackingTooSlow from None
        yield b"".join(pieces)
    finally:
        bodies.let_go(held, owner=owner)


class _Unpacker(Protocol):
    """What undoes one member; it keeps what it was given and has not unpacked yet."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, most: int, /) -> bytes:
        """So many bytes at most. Raises zlib.error or ZstdError."""


class _Members:
    """The members of a gzip file, unpacked one after the other (RFC 1952), each byte read once; of
    a zstd its frames, and of deflate the only one."""

    def __init__(self, body: bytes, coding: Coding) -> None:
        self._body = body
        self._coding = coding
        self._position = 0  # how far the body was given
        self._rest = b""  # given, and behind the end of a member
        self._unpacker = _unpacker(coding, body)
        self._number, self._size = 1, 0
        self.is_done = not body

    def next_piece(self, most: int) -> bytes:
        """So many bytes at most; none at the end of a slice that says nothing. Raises
        BodyNotUnpacked."""
        wants = self._unpacker.needs_input
        given = self._next_slice() if wants else b""
        try:
            piece = self._unpacker.decompress(given, most)
        except (zlib.error, zstd.ZstdError):
            raise self._invalid() from None
        self._size += len(piece)
        if self._unpacker.eof:
            self._rest = self._unpacker.unused_data
            self._end_member()
        elif wants and not piece and not given:
            raise BodyNotUnpacked(f"The body is not complete: its {self._coding.value} breaks off.")
        return piece

    def _next_slice(self) -> bytes:
        given, self._rest = self._rest, b""
        if not given:
            given = self._body[self._position : self._position + _SLICE_BYTES]
            self._position += len(given)
        return given

    def _end_member(self) -> None:
        self.is_done = not self._rest and self._position >= len(self._body)
        if not self.is_done and self._coding is Coding.DEFLATE:
            raise self._invalid()
        is_one_of_many = self._number > 1 or not self.is_done
        coding = self._coding.value
        if self._size == 0 and is_one_of_many:
            raise BodyNotUnpacked(f"The body's {coding} has an empty member. Send it as one.")
        if self.is_done:
            return
        self._number, self._size = self._number + 1, 0
        if self._number > _MOST_MEMBERS:
            raise BodyNotUnpacked(f"The body's {coding} may have at most {_MOST_MEMBERS} members.")
        self._unpacker = _unpacker(self._coding, self._rest)

    def _invalid(self) -> BodyNotUnpacked:
        return BodyNotUnpacked(
            f"The body is not valid {self._coding.value}, as its Content-Encoding says."
        )


class _Inflater:
    """zlib's decompressor, as zstd's is used."""

    def __init__(self, window_bits: int) -> None:
        self._zlib = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, most: int, /) -> bytes:
        """So many bytes at most. Raises zlib.error."""
        return self._zlib.decompress(self._zlib.unconsumed_tail or data, most)


def _unpacker(coding: Coding, begins: bytes) -> _Unpacker:
    """For the next member, which begins so."""
    if coding is Coding.ZSTD:
        return zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )
    if coding is Coding.GZIP:
        return _Inflater(_GZIP)
    # Some clients send deflate without the header that zlib puts before it (RFC 1950, 2.2).
    has_header = (
        len(begins) > 1 and begins[0] & 0x0F == 8 and (begins[0] << 8 | begins[1]) % 31 == 0
    )
    return _Inflater(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
