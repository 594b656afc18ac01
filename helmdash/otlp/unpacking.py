"""Bodies that come as gzip: unpacked in steps, within a bound and the memory that all bodies share.

A few kilobytes can say gigabytes, so nothing is unpacked further than there is room for.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from helmdash.doors.body import Bodies
from helmdash.doors.faults import BodyTooLarge
from helmdash.otlp.signals import BadExport

# zlib's window size, with 16 for gzip's own frame.
_GZIP = 16 + zlib.MAX_WBITS
# Unpacking so much takes some 10 ms.
_STEP_BYTES = 4 * 1024 * 1024


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
    bodies: Bodies, body: bytes, *, owner: str, most_bytes: int
) -> AsyncIterator[bytes]:
    """The unpacked body for the length of a block.

    most_bytes: for packed and unpacked together, since both are held. Raises BadExport,
    BodyTooLarge and BodiesFull.
    """
    room = max(most_bytes - len(body), 0)
    pieces: list[bytes] = []
    held, rest = 0, body
    unpacker = zlib.decompressobj(_GZIP)
    try:
        while rest or (pieces and not unpacker.eof):
            step = min(_STEP_BYTES, room - held + 1)
            piece, more = await asyncio.to_thread(_unpack, unpacker, rest, step)
            if held + len(piece) > room:
                raise BodyTooLarge(most_bytes, is_signed_in=True)
            bodies.hold(len(piece), owner=owner)
            held += len(piece)
            pieces.append(piece)
            if unpacker.eof:
                # What follows is another member of the same file, says RFC 1952.
                rest = unpacker.unused_data
                unpacker = zlib.decompressobj(_GZIP) if rest else unpacker
            elif not more and not piece:
                raise BadExport("The body is not complete: its gzip breaks off.")
            else:
                rest = more
        yield b"".join(pieces)
    finally:
        bodies.let_go(held, owner=owner)


def _unpack(unpacker: zlib._Decompress, data: bytes, most: int) -> tuple[bytes, bytes]:
    try:
        piece = unpacker.decompress(data, most)
    except zlib.error:
        raise BadExport("The body is not valid gzip, as its Content-Encoding says.") from None
    return piece, unpacker.unconsumed_tail
