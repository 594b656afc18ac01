"""Shared: what one server process has once, for all faces: the client, the lists, background work.

The house makes it when it starts (asgi.py) and puts it into the scope of every request. Without
one (a command, a test), a face makes do with what it opens itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, TypeVar

from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listings import Listings

log = logging.getLogger(__name__)

# Where it stands in the scope of a request.
SHARED_KEY = "helmdash.shared"
# What cancelled work has for noting that it was cancelled.
_LAST_SECONDS = 2.0

_T = TypeVar("_T")
Work = Coroutine[Any, Any, object]


class Stopping(Exception):
    """The server is stopping: it takes no more work."""


async def _as_it_is(work: Awaitable[object]) -> None:
    await work


class Shared:
    """One for each process; made on the event loop that it works on.

    `around` runs a piece of background work, and gives it what a request has: a thread and a
    connection of its own (asgi.py).
    """

    def __init__(
        self,
        client: UpstreamClient,
        listings: Listings,
        *,
        around: Callable[[Awaitable[object]], Coroutine[Any, Any, None]] = _as_it_is,
    ) -> None:
        self.client = client
        self.listings = listings
        self.loop = asyncio.get_running_loop()
        self._around = around
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._has_stopped = False

    def spawn(self, work: Work) -> None:
        """Begin work that no request waits for. From the loop, or from any thread.

        What it raises is logged. It is not bound to the request that began it. Raises Stopping
        when the server is about to stop; the work then never begins.
        """
        if self._is_stopping:
            work.close()
            raise Stopping("HelmDash is stopping. Ask again when it runs.")
        if _running_loop() is self.loop:
            self._begin(work)
            return
        try:
            self.loop.call_soon_threadsafe(self._begin, work)
        except RuntimeError:  # the loop has ended meanwhile
            work.close()
            raise Stopping("HelmDash is stopping. Ask again when it runs.") from None

    @property
    def busy(self) -> int:
        """How many pieces of work are under way."""
        return len(self._tasks)

    async def stop(self, seconds: float) -> None:
        """Take no more work, wait this long for what is under way, then cancel it."""
        self._is_stopping = True
        await asyncio.sleep(0)  # what a thread has handed in by now has begun
        await self._wait(seconds)
        self._has_stopped = True
        for task in self._tasks:
            self._cancel(task)
        await self._wait(_LAST_SECONDS)

    async def aclose(self) -> None:
        """Close the connections to upstreams, also those of work under way."""
        await self.listings.aclose()
        await self.client.aclose()

    def _begin(self, work: Work) -> None:
        # An empty context: work must not lean on the thread and the connection of a request that
        # is answered long before it ends.
        task = self.loop.create_task(self._run(work), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._has_stopped:  # a thread handed it in at the last moment
            self._cancel(task)

    def _cancel(self, task: asyncio.Task[None]) -> None:
        """After its first step: somebody may wait for it to say how it ended."""
        self.loop.call_soon(task.cancel)

    async def _run(self, work: Work) -> None:
        try:
            await self._around(work)
        except Exception:
            log.exception("work in the background failed")

    async def _wait(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)


def shared_of(source: object) -> Shared | None:
    """The shared things behind a Django request or an ASGI scope; None where there are none."""
    scope = source if isinstance(source, Mapping) else getattr(source, "scope", None)
    found = scope.get(SHARED_KEY) if isinstance(scope, Mapping) else None
    return found if isinstance(found, Shared) else None


async def on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
    """Do work on the loop that its connections are on, from any loop. Cancelling it cancels it."""
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@asynccontextmanager
async def own_connections() -> AsyncIterator[tuple[UpstreamClient, Listings]]:
    """A client and its lists for the length of a block, where no server has any to share."""
    client = UpstreamClient()
    listings = Listings(client)
    try:
        yield client, listings
    finally:
        await listings.aclose()
        await client.aclose()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
