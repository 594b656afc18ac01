"""Bodies: read whole, within a number of bytes, a time, and memory that all of them share.

One reader for each process, used by every face on the one event loop. What has come of a body
counts from its first byte on, so that bodies that never end are counted, too; and nobody holds
more than a share, so that one key with many large requests leaves room for the others.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from helmdash.doors.asgi import Connection, Disconnected, Message, Receive
from helmdash.doors.faults import BodiesFull, BodyPacked, BodyTooLarge, BodyTooSlow

# Whoever is not signed in.
ANONYMOUS = ""
# A body in one piece up to this size is let in whatever else is held: uvicorn has it in memory
# already, and a small request must not wait for the large ones of others.
_SMALL_BYTES = 64 * 1024
# Python looks for garbage by the number of objects, not by their size: what a form of a page left,
# some nine times its bytes, waited until fifty thousand objects had been made. Among the young ones
# alone: some milliseconds, where the reading of so many bytes took a hundred times that. In the
# process for large requests as well, which serves the same application.
_LOOK_AFTER_BYTES = 8 * 1024 * 1024
_UNPACKED = frozenset({b"", b"identity"})
# The part of all memory for bodies that one caller may hold, and that all strangers together may:
# a 64th of 256 MiB are thousands of sign-in forms.
_SHARE = 2
_ANONYMOUS_SHARE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bodies may have: bytes of one, bytes of all together, seconds until one is here.

    all_bytes is raised to twice a whole body where it is set to less, so that two callers can
    each send one.
    """

    body_bytes: int
    anonymous_bytes: int
    all_bytes: int
    seconds: float
    anonymous_seconds: float


class Bodies:
    """Reads bodies, and knows how many bytes of them are held at the moment, and by whom."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all_bytes = max(limits.all_bytes, _SHARE * limits.body_bytes)
        self._held: Counter[str] = Counter()
        self._held_bytes = 0
        self._left_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What all bodies that are being read or worked on take of the shared memory, in bytes."""
        return self._held_bytes

    @property
    def share_bytes(self) -> int:
        """What one caller may hold at most, and so the largest body there can be."""
        return self._all_bytes // _SHARE

    @property
    def body_bytes(self) -> int:
        """What one body of a caller who is known may have: HELMDASH_MAX_BODY_BYTES."""
        return self._limits.body_bytes

    async def read(
        self,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        *,
        owner: str,
        most_bytes: int | None = None,
        may_be_packed: bool = False,
    ) -> bytes:
        """The whole body of a caller (ANONYMOUS: of nobody that is known).

        most_bytes: what the face takes, where that is not HELMDASH_MAX_BODY_BYTES; never more than
        a caller's share. may_be_packed: the face undoes the Content-Encoding itself.

        Raises BodyPacked, BodyTooLarge, BodyTooSlow, BodiesFull, or Disconnected. The bytes count
        as held until `release` is told of them.
        """
        if not may_be_packed and not is_plain(headers):
            raise BodyPacked
        limits = self._limits
        limit = limits.anonymous_bytes if owner == ANONYMOUS else limits.body_bytes
        is_set = most_bytes is None or owner == ANONYMOUS
        if most_bytes is not None and not is_set:
            limit = min(most_bytes, self.share_bytes)
        seconds = limits.anonymous_seconds if owner == ANONYMOUS else limits.seconds
        too_large = partial(BodyTooLarge, limit, is_signed_in=owner != ANONYMOUS, is_set=is_set)
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            raise too_large()
        try:
            async with asyncio.timeout(seconds):
                first = await _next(receive)
                body: bytes = first.get("body", b"")
                if not first.get("more_body", False) and len(body) <= _SMALL_BYTES:
                    if len(body) > limit:
                        raise too_large()
                    self._add(len(body), owner)
                    return body
                return await self._rest(first, receive, owner, limit, too_large)
        except TimeoutError:
            raise BodyTooSlow(seconds) from None

    def at_hand(
        self, headers: Mapping[bytes, bytes], connection: Connection | None, *, owner: str
    ) -> bytes | None:
        """The whole body of a caller who is known, where it is small and here already, as most
        are; None: it is to be read. Counts as held like one that is read."""
        if connection is None or not _is_small(headers, self._limits.body_bytes):
            return None
        body = connection.whole_body()
        if body is not None:
            self._add(len(body), owner)
        return body

    def release(self, body: bytes, *, owner: str) -> None:
        """The body is no longer held."""
        self._add(-len(body), owner)
        if len(body) > _SMALL_BYTES:
            self._left_bytes += len(body)
            if self._left_bytes > _LOOK_AFTER_BYTES:
                self._left_bytes = 0
                gc.collect(1)

    def hold(self, size: int, *, owner: str) -> None:
        """Count what a body takes besides its own bytes, such as itself unpacked, until `let_go`.

        Raises BodiesFull.
        """
        self._check(size, owner)
        self._add(size, owner)

    def let_go(self, size: int, *, owner: str) -> None:
        """What `hold` counted is no longer held."""
        self._add(-size, owner)

    @asynccontextmanager
    async def reading(
        self,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        *,
        owner: str,
        most_bytes: int | None = None,
        may_be_packed: bool = False,
    ) -> AsyncIterator[bytes]:
        """The body for the length of a block. Raises what `read` raises."""
        body = await self.read(
            headers, receive, owner=owner, most_bytes=most_bytes, may_be_packed=may_be_packed
        )
        try:
            yield body
        finally:
            self.release(body, owner=owner)

    async def _rest(
        self,
        message: Message,
        receive: Receive,
        owner: str,
        limit: int,
        too_large: Callable[[], BodyTooLarge],
    ) -> bytes:
        parts: list[bytes] = []
        held = 0
        try:
            while True:
                part = message.get("body", b"")
                if held + len(part) > limit:
                    raise too_large()
                self._check(len(part), owner)
                self._add(len(part), owner)
                held += len(part)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
                message = await _next(receive)
        except BaseException:
            self._add(-held, owner)
            raise

    def _check(self, size: int, owner: str) -> None:
        if self._held_bytes + size > self._all_bytes:
            raise BodiesFull(of_caller=False)
        share = _ANONYMOUS_SHARE if owner == ANONYMOUS else _SHARE
        if self._held[owner] + size > self._all_bytes // share:
            raise BodiesFull(of_caller=owner != ANONYMOUS)

    def _add(self, size: int, owner: str) -> None:
        self._held_bytes += size
        self._held[owner] += size
        if not self._held[owner]:
            del self._held[owner]


def _is_small(headers: Mapping[bytes, bytes], limit: int) -> bool:
    """Whether a body says that it is small, within the limit, and comes as it is."""
    declared = headers.get(b"content-length", b"")
    is_counted = declared.isdigit() and int(declared) <= min(limit, _SMALL_BYTES)
    return is_counted and (b"content-encoding" not in headers or is_plain(headers))


def is_plain(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a body comes as it is, neither compressed nor coded otherwise."""
    return headers.get(b"content-encoding", b"identity").strip().lower() in _UNPACKED


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request announces a body, by its length or as chunks."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def without_body(receive: Receive) -> Receive:
    """A receive that says at once that there is no body, and reads none.

    After that it says nothing any more: to see the client leave, it would have to read what the
    client sends. What comes is thrown away by the server, up to a bound (doors.http.protocol).
    """
    is_told = False

    async def next_message() -> Message:
        nonlocal is_told
        if not is_told:
            is_told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    return next_message


async def _next(receive: Receive) -> Message:
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    return message
