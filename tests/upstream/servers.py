"""Small HTTP servers on this machine that behave as upstreams do on their worst days."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvloop

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import Timeouts, UpstreamClient

_T = TypeVar("_T")
KEY = "sk-hidden-0123456789abcdef"
REQUEST = HttpRequest(
    path="/chat/completions",
    headers=(("content-type", "application/json"), ("authorization", f"Bearer {KEY}")),
    body=b'{"model":"m"}',
)
# Short enough for a test, long enough for a busy machine.
HASTE = Timeouts(connect=0.3, write=0.3, pool=0.3)


@dataclass
class Exchange:
    """One request as the server saw it, and the connection to answer on."""

    head: str
    body: bytes
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    def say(self, status: str, body: bytes = b"", *headers: str) -> None:
        """A whole answer."""
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def start(self, *headers: str) -> None:
        """The head of an answer that comes in chunks."""
        lines = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        """One chunk; an empty one is the end."""
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def hang_up(self) -> None:
        """Close the connection."""
        self.writer.close()

    async def wait_until_left(self) -> None:
        """Return when the client has closed the connection."""
        try:
            while await self.reader.read(1024):
                pass
        except ConnectionError:
            pass


Handler = Callable[[Exchange], Awaitable[None]]


@dataclass
class Server:
    """A running server: what it was asked, and over how many connections."""

    port: int
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def serving(*handlers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that answers its nth request with the nth handler, and the rest with the last."""
    tasks: set[asyncio.Task[Any]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        server.connections += 1
        try:
            while True:
                raw = await reader.readuntil(b"\r\n\r\n")
                head = raw.decode()
                server.heads.append(head)
                handler = handlers[min(len(server.heads), len(handlers)) - 1]
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in head.lower().split("\r\n")
                        if line.startswith("content-length:")
                    ),
                    0,
                )
                reads = not getattr(handler, "ignores_body", False)
                body = await reader.readexactly(length) if reads else b""
                await handler(Exchange(head, body, writer, reader))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            server.left.set()
            writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    server = Server(port=listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def calling(**options: Any) -> AsyncIterator[UpstreamClient]:
    """A client with short timeouts."""
    client = UpstreamClient(**{"timeouts": HASTE, **options})
    try:
        yield client
    finally:
        await client.aclose()


def endpoint(port: int, **over: Any) -> Endpoint:
    """An endpoint on this machine."""
    values: dict[str, Any] = {
        "name": "mine",
        "kind": ProviderKind.OPENAI,
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key": KEY,
        "allow_private": True,
        "read_timeout_s": 5.0,
    }
    return Endpoint(**{**values, **over})


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run on the loop that the server uses, and fail if a task is left over."""

    async def whole() -> _T:
        result = await coroutine
        # A cancelled look-up or a closing connection may need a turn or two.
        for _ in range(20):
            if len(asyncio.all_tasks()) == 1:
                break
            await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(whole())
