"""A small HTTP/1.1 server in a thread: it keeps what it was sent, and may break off anywhere.

Written on sockets rather than with a framework, because a simulated upstream has to send half a
chunk, close without an end, and notice at once that its client has hung up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

_LARGEST_HEAD = 256 * 1024
_START_SECONDS = 10
_REASONS = {200: "OK", 307: "Temporary Redirect", 400: "Bad Request", 404: "Not Found"}


@dataclass(slots=True, eq=False)
class Seen:
    """One request as it came, and what became of it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    status: int | None = None
    sent: bytearray = field(default_factory=bytearray)
    """The bytes of the body that were sent back, without the framing of chunks."""
    is_complete: bool = False
    hung_up: threading.Event = field(default_factory=threading.Event)
    hung_up_at: float | None = None

    @property
    def path(self) -> str:
        """The path without its query, decoded."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        return urlsplit(self.target).query

    @property
    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """All that came: request line, headers and body, for looking for what must not be there."""
        lines = [
            f"{self.method} {self.target}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        return "\n".join(lines) + "\n\n" + self.body.decode(errors="replace")

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def all_headers(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        self.seen = seen
        self.keeps_alive = True
        self._writer = writer
        self._is_chunked = False

    async def reply(
        self, status: int, body: bytes, *, kind: str = "application/json", **headers: str
    ) -> None:
        """A whole answer."""
        self.seen.sent += body
        self.seen.status = status
        self.seen.is_complete = True
        await self.raw(self._head(status, kind, headers, [f"content-length: {len(body)}"]) + body)

    async def start(self, status: int, *, kind: str, **headers: str) -> None:
        """The head of an answer that comes in pieces."""
        self.seen.status = status
        self._is_chunked = True
        await self.raw(self._head(status, kind, headers, ["transfer-encoding: chunked"]))

    async def write(self, data: bytes) -> None:
        """A piece of the body."""
        self.seen.sent += data
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """The sound end of an answer that came in pieces."""
        self.seen.is_complete = True
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def hang(self) -> None:
        """Say nothing more until the client hangs up or the server stops."""
        await asyncio.Event().wait()

    def cut(self) -> None:
        """Close the connection where it stands."""
        self.keeps_alive = False
        self._writer.transport.abort()

    @staticmethod
    def _head(status: int, kind: str, headers: dict[str, str], framing: Iterable[str]) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
            f"content-type: {kind}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
            *framing,
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


Handler = Callable[[Exchange], Awaitable[None]]


class Server:
    """Serves `handler` on a port of its own from a thread; `seen` grows with each request."""

    def __init__(self, handler: Handler, *, asides: frozenset[str] = frozenset()) -> None:
        """`asides`: paths whose requests `seen` leaves out."""
        self._handler = handler
        self._asides = asides
        self._seen: list[Seen] = []
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    @property
    def root_url(self) -> str:
        """http://127.0.0.1:PORT"""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        if not self._is_up.wait(_START_SECONDS):
            raise RuntimeError("a simulated upstream did not start")

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_SECONDS)

    def seen(self, part: str = "") -> list[Seen]:
        """The requests so far whose target or body holds `part`, such as a model's name."""
        with self._changed:
            return [each for each in self._seen if _holds(each, part)]

    def wait_for(self, part: str, *, count: int = 1, seconds: float = 10) -> list[Seen]:
        """The same, once there are `count`. Raises AssertionError after `seconds`."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while len(found := [each for each in self._seen if _holds(each, part)]) < count:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"{len(found)} requests with {part!r}, not {count}")
                self._changed.wait(left)
            return found

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(self._listen())
        self.port = server.sockets[0].getsockname()[1]
        self._is_up.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        """Close what clients have left open: a socket that the garbage collector finds is a
        warning, and fails whatever test runs at that moment."""
        for writer in list(self._writers):
            writer.transport.abort()
        # A transport closes its socket in the loop's next turn.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _listen(self) -> asyncio.Server:
        def protocol() -> asyncio.StreamReaderProtocol:
            reader = _Reader(limit=_LARGEST_HEAD)
            return asyncio.StreamReaderProtocol(reader, self._serve)

        return await self._loop.create_server(protocol, "127.0.0.1", 0, backlog=256)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader)
        self._writers.add(writer)
        with contextlib.suppress(
            asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError
        ):
            keeps_alive = True
            while keeps_alive:
                seen = await _read_request(reader)
                if seen.path not in self._asides:
                    with self._changed:
                        self._seen.append(seen)
                        self._changed.notify_all()
                keeps_alive = await self._answer(Exchange(seen, writer), reader)
        writer.close()

    async def _answer(self, exchange: Exchange, reader: _Reader) -> bool:
        """Run the handler for as long as the client stays; gives whether the connection does."""
        work = asyncio.ensure_future(self._handler(exchange))
        leaving = asyncio.ensure_future(reader.is_closed.wait())
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if work.done() and not isinstance(work.exception(), ConnectionError):
            if work.exception() is not None:
                fault = "".join(traceback.format_exception(work.exception()))
                await exchange.reply(599, f"the simulation itself failed: {fault}".encode())
            return exchange.keeps_alive
        exchange.seen.hung_up_at = time.monotonic()
        exchange.seen.hung_up.set()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await work
        return False


class _Reader(asyncio.StreamReader):
    """A reader that tells when the other side has closed, read or not."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self.is_closed = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.is_closed.set()

    def set_exception(self, exc: BaseException) -> None:
        super().set_exception(exc)  # type: ignore[arg-type]
        self.is_closed.set()


def _holds(seen: Seen, part: str) -> bool:
    return not part or part in seen.path or part.encode() in seen.body


async def _read_request(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = tuple(
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    seen = Seen(method, target, headers, b"", time.monotonic())
    if (seen.header("transfer-encoding") or "").lower() == "chunked":
        seen.body = await _read_chunks(reader)
    else:
        seen.body = await reader.readexactly(int(seen.header("content-length") or 0))
    return seen


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return bytes(body)
