"""Bodies that come packed: unpacked in steps, within a bound and the memory that all bodies share.

A few kilobytes can say gigabytes, so nothing is unpacked further than there is room for.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum

from helmdash.doors.body import Bodies
from helmdash.doors.faults import BodyNotUnpacked, BodyTooLarge, UnpackingTooSlow

# zlib's window size, with 16 for gzip's own frame; negative: without any frame.
_GZIP = 16 + zlib.MAX_WBITS
_BARE = -zlib.MAX_WBITS
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


class _Members:
    """The members of a gzip file, unpacked one after the other (RFC 1952), each byte read once; of
    another coding the only one."""

    def __init__(self, body: bytes, coding: Coding) -> None:
        self._body = body
        self._coding = coding
        self._position = 0  # how far the body was given
        self._rest = b""  # given, and not unpacked yet
        self._unpacker = zlib.decompressobj(_window_bits(coding, body))
        self._number, self._size = 1, 0
        self.is_done = not body

    def next_piece(self, most: int) -> bytes:
        """So many bytes at most; none at the end of a slice that says nothing. Raises
        BodyNotUnpacked."""
        given = self._rest
        if not given:
            given = self._body[self._position : self._position + _SLICE_BYTES]
            self._position += len(given)
        try:
            piece = self._unpacker.decompress(given, most)
        except zlib.error:
            raise self._invalid() from None
        self._size += len(piece)
        self._rest = self._unpacker.unconsumed_tail
        if self._unpacker.eof:
            self._rest = self._unpacker.unused_data
            self._end_member()
        elif not piece and not given:
            raise BodyNotUnpacked(f"The body is not complete: its {self._coding.value} breaks off.")
        return piece

    def _end_member(self) -> None:
        self.is_done = not self._rest and self._position >= len(self._body)
        if not self.is_done and self._coding is not Coding.GZIP:
            raise self._invalid()
        is_one_of_many = self._number > 1 or not self.is_done
        if self._size == 0 and is_one_of_many:
            raise BodyNotUnpacked("The body's gzip has an empty member. Send it as one member.")
        if self.is_done:
            return
        self._number, self._size = self._number + 1, 0
        if self._number > _MOST_MEMBERS:
            raise BodyNotUnpacked(f"The body's gzip may have at most {_MOST_MEMBERS} members.")
        self._unpacker = zlib.decompressobj(_GZIP)

    def _invalid(self) -> BodyNotUnpacked:
        return BodyNotUnpacked(
            f"The body is not valid {self._coding.value}, as its Content-Encoding says."
        )


def _window_bits(coding: Coding, body: bytes) -> int:
    """Some clients send deflate without the header that zlib puts before it (RFC 1950, 2.2)."""
    if coding is Coding.GZIP:
        return _GZIP
    has_header = body[:1] and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if has_header else _BARE
