"""The SDK's server, running: loaded at the first request, ended with the house."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helmdash.doors.asgi import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


@dataclass(frozen=True, slots=True)
class _Managers:
    plain: StreamableHTTPSessionManager
    streaming: StreamableHTTPSessionManager


class McpTransport:
    """Streamable HTTP without sessions, in both eras of the protocol. Used on one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._running: asyncio.Future[_Managers] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def ready(self) -> None:
        """Wait until it runs; at once but for the first time. Raises what loading it raised."""
        await asyncio.shield(self._start())

    async def handle(self, scope: Scope, receive: Receive, send: Send, *, streams: bool) -> None:
        """Answer one request, when ready. `streams`: in a stream, if there is anything to tell
        before its end; otherwise as one JSON body."""
        managers = self._start().result()
        manager = managers.streaming if streams else managers.plain
        await manager.handle_request(scope, receive, send)

    async def stop(self) -> None:
        """End it; what is still under way is cancelled."""
        self._stopping.set()
        if self._keeper is not None:
            await asyncio.wait({self._keeper})

    def _start(self) -> asyncio.Future[_Managers]:
        """Made once in each process: the managers can run only once."""
        if self._running is None or (
            self._running.done() and self._running.exception() is not None
        ):
            loop = asyncio.get_running_loop()
            self._running = loop.create_future()
            # A task of its own: what it opens has to be closed in the task that opened it.
            self._keeper = loop.create_task(self._keep(self._running))
        return self._running

    async def _keep(self, running: asyncio.Future[_Managers]) -> None:
        try:
            managers = await asyncio.to_thread(_load, self._limit_bytes)
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(managers.plain.run())
                await stack.enter_async_context(managers.streaming.run())
                running.set_result(managers)
                await self._stopping.wait()
        except Exception as error:
            if running.done():
                raise
            running.set_exception(error)


def _load(limit_bytes: int) -> _Managers:
    # Here and not above: see the docstring of that module.
    from helmdash.mcp.server import build_manager, let_streams_end

    let_streams_end()
    return _Managers(
        plain=build_manager(limit_bytes=limit_bytes, streams=False),
        streaming=build_manager(limit_bytes=limit_bytes, streams=True),
    )
