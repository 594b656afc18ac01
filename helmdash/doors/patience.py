"""Nobody waits for a silent database: a client has its answer within five seconds.

A database that cannot be reached says so by an error. One that hangs (a stopped process, a cable
that was cut, a disk that does not respond, a file that another program has locked) says nothing,
and no driver can be told to give up. So when a request has waited for some seconds, the database is
asked something simple beside it. Where that is not answered either, the client is told (503), and
so is everybody who comes until it answers again. A request that only takes its time goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from helmdash.doors.asgi import App, Receive, Scope, Send
from helmdash.doors.closable import ClosableSend
from helmdash.doors.faults import DatabaseUnavailable
from helmdash.operations.database.replica import Reading, is_responding
from helmdash.operations.database.timeouts import is_answering

log = logging.getLogger(__name__)

# With the second that the question may take, and one for a busy machine, less than five.
_ASK_AFTER_S = 2.5
_ASK_AGAIN_S = 2.0
# While it is silent: how soon after its return everybody is let in again.
_LOOK_S = 0.5
# In the scope of a request that only reads: where it does.
READING_KEY = "helmdash.reading"
# In the scope of a question that is let through: all others are turned away at this moment.
TURNED_AWAY_KEY = "helmdash.turned_away"
# They tell how the database is.
LIVENESS = frozenset({"/healthz", "/readyz", "/metrics"})
# Whoever stores reports bounds them already (operations.recorder).
_REPORTS = frozenset({"/api/v1/calls", "/api/v1/calls/batch"})


class DatabaseWatch:
    """Whether the database answers, as far as somebody had reason to ask. On one event loop."""

    def __init__(
        self,
        ask: Callable[[], bool] = is_answering,
        ask_replica: Callable[[], bool] = is_responding,
    ) -> None:
        self._ask = ask
        self._ask_replica = ask_replica
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database-watch")
        self._asking: asyncio.Task[bool] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def is_silent(self) -> bool:
        """It did not answer when it was asked last, and is asked again and again."""
        return self._looking is not None

    async def is_answering(self) -> bool:
        """Ask it, within about a second."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer())
        return await asyncio.shield(self._asking)

    async def run(
        self, work: Callable[[Send], Awaitable[None]], send: Send, scope: Scope | None = None
    ) -> None:
        """Let `work` answer a request. Raises DatabaseUnavailable, with nothing sent, where the
        database does not respond, or the replica that this request reads from (by its scope):
        others go on then, for they are answered by the primary.

        Work that is given up on goes on by itself: it may be inside a statement.
        """
        if self.is_silent:
            raise DatabaseUnavailable
        answer = ClosableSend(send)
        task = asyncio.ensure_future(_run(work, answer.send))
        try:
            wait = _ASK_AFTER_S
            while not await _has_ended(task, wait) and not answer.has_begun:
                wait = _ASK_AGAIN_S
                is_served = await self._replica_answers(scope) and await self.is_answering()
                if not is_served and answer.close():
                    self._let_go(task)
                    raise DatabaseUnavailable
        except asyncio.CancelledError:
            # The server stops: whoever answers says so in order.
            task.cancel()
        await task

    def close(self) -> None:
        """End the thread, and the looking."""
        if self._looking is not None:
            self._looking.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _replica_answers(self, scope: Scope | None) -> bool:
        """True as well where it is not asked."""
        reading: Reading | None = (scope or {}).get(READING_KEY)
        if reading is None or not reading.is_on_replica:
            return True
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._ask_replica)

    async def _answer(self) -> bool:
        loop = asyncio.get_running_loop()
        is_there = await loop.run_in_executor(self._thread, self._ask)
        if not is_there and self._looking is None:
            log.warning("the database does not respond; requests that need it are turned away")
            self._looking = asyncio.create_task(self._look())
        return is_there

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while not await loop.run_in_executor(self._thread, self._ask):
                await asyncio.sleep(_LOOK_S)
            log.warning("the database answers again")
        finally:
            self._looking = None

    def _let_go(self, task: asyncio.Task[None]) -> None:
        # Kept, lest it be collected; its end is awaited by nobody.
        self._ending.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # it has been logged where it was raised


class Patient:
    """The ASGI application `app`, whose clients do not wait for a silent database."""

    def __init__(self, app: App, watch: DatabaseWatch) -> None:
        self._app = app
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises DatabaseUnavailable, with nothing sent."""
        if scope["type"] != "http" or _is_exempt(scope):
            if self._watch.is_silent:
                scope = {**scope, TURNED_AWAY_KEY: True}
            await self._app(scope, receive, send)
            return
        await self._watch.run(lambda out: self._app(scope, receive, out), send, scope)


def _is_exempt(scope: Scope) -> bool:
    path = scope["path"]
    return path in LIVENESS or (path in _REPORTS and scope["method"] == "POST")


async def _has_ended(task: asyncio.Task[None], seconds: float) -> bool:
    done, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(done)


async def _run(work: Callable[[Send], Awaitable[None]], send: Send) -> None:
    await work(send)
