"""An answer whose status and headers are here, and whose body comes as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import NoReturn

from helmdash.upstream.coding import Inflater, Unreadable
from helmdash.upstream.failures import FailureKind, UpstreamFailed, failure_of, tidy
from helmdash.upstream.transport import Answered


class Opened:
    """The answer of an upstream. Read it once, by `read` or by `chunks`, and close it.

    `headers` have lower-case names; they are those of the bytes that are handed out, so not of a
    compression that was undone. `attempts` is every try, ready for JSON: number, at_ms (since
    the call began), took_ms (to the headers), status or error, message, waited_ms.
    """

    __slots__ = (
        "_coding",
        "_inflater",
        "_key",
        "_name",
        "_parts",
        "_peeked",
        "_stream",
        "attempts",
        "headers",
        "status",
    )

    def __init__(self, answered: Answered, *, name: str, key: str | None) -> None:
        headers = headers_of(answered.raw_headers)
        self.status = answered.status
        coding = headers.get("content-encoding", "").strip().lower()
        self._coding = "" if coding == "identity" else coding
        if self._coding:
            # They speak of bytes that nobody gets to see.
            packed = ("content-encoding", "content-length")
            headers = {name: value for name, value in headers.items() if name not in packed}
        self.headers = headers
        self.attempts: tuple[Mapping[str, object], ...] = ()
        self._stream = answered.stream
        self._name = name
        self._key = key
        self._inflater: Inflater | None = None
        self._parts: Iterator[bytes] | None = None
        self._peeked: list[bytes] = []

    async def read(self, limit_bytes: int) -> bytes:
        """The whole body. Raises UpstreamFailed: too_large, and what `chunks` raises."""
        if not (self._coding or self._peeked):
            whole = self._stream.take_whole()
            if whole is not None:
                self._check_size(len(whole), limit_bytes)
                return whole
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            self._check_size(size, limit_bytes)
            parts.append(chunk)
        return b"".join(parts)

    def _check_size(self, size: int, limit_bytes: int) -> None:
        if size > limit_bytes:
            self._fail(
                UpstreamFailed(
                    FailureKind.TOO_LARGE,
                    f"Upstream {self._name} answered with more than {limit_bytes:,} bytes.",
                )
            )

    async def peek(self, limit_bytes: int) -> bytes:
        """The beginning of the body, or all of it; `read` and `chunks` hand it out once more.

        Once, before either. Raises what `chunks` raises, and cuts nothing off what is to come.
        """
        pieces: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            pieces.append(chunk)
            size += len(chunk)
            if size >= limit_bytes:
                break
        self._peeked = pieces[::-1]
        return b"".join(pieces)[:limit_bytes]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces that are never empty.

        Raises UpstreamFailed: timeout_read, closed_early, or misconfigured when it is compressed
        in a way nobody asked for. Cancelling it closes the connection.
        """
        return _Chunks(self.reading())

    def reading(self) -> Callable[[], Awaitable[bytes]]:
        """The same as a function that gives the next piece, and none at the end: for streams, of
        which each piece counts. Raises what `chunks` raises."""
        if self._coding and self._inflater is None:
            try:
                self._inflater = Inflater(self._coding)
            except Unreadable as error:
                self._fail(self._unreadable(error))
        return self.next_chunk

    async def close(self) -> None:
        """Close the connection unless the body was read to its end. Safe to repeat."""
        self._stream.close()

    def close_now(self) -> None:
        """The same where nothing can be awaited."""
        self._stream.close()

    async def next_chunk(self) -> bytes:
        """The next piece; empty at the end. What `chunks` is made of."""
        if self._peeked:
            return self._peeked.pop()
        while True:
            if self._parts is not None:
                try:
                    return next(self._parts)
                except StopIteration:
                    self._parts = None
                except Unreadable as error:
                    self._fail(self._unreadable(error))
            try:
                data = await self._stream.next_bytes()
            except Exception as error:
                self._fail(failure_of(error, name=self._name, key=self._key), error)
            if self._inflater is None or not data:
                return data
            self._parts = self._inflater.feed(data)

    def _unreadable(self, error: Unreadable) -> UpstreamFailed:
        return UpstreamFailed(
            FailureKind.MISCONFIGURED,
            f"Upstream {self._name} compressed its answer in a way that cannot be undone "
            f"({tidy(str(error), key=self._key)}), although it was asked not to.",
        )

    def _fail(self, failure: UpstreamFailed, cause: Exception | None = None) -> NoReturn:
        self._stream.close()
        if self.attempts:
            told = {"error": failure.kind.value, "message": failure.message}
            self.attempts = (*self.attempts[:-1], {**self.attempts[-1], **told})
        failure.attempts = self.attempts
        raise failure from cause


class _Chunks:
    __slots__ = ("_next",)

    def __init__(self, next_chunk: Callable[[], Awaitable[bytes]]) -> None:
        self._next = next_chunk

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self._next()
        if not data:
            raise StopAsyncIteration
        return data


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Header fields by their lower-case names; repeated ones are joined, as RFC 9110 5.2 has it."""
    found: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
