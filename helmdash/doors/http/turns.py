"""One after the other: what can wait is done in turns, all else in between.

An event loop does all that is ready before it looks again. A dozen people nobody knows who come in
the same moment would be answered in one go, and a client with a good key would wait for all of
them. Each of them gets a round of the loop of its own instead. So does each stream's bulk, for
which a request that has just come would wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

Turn = Callable[[], None]


class Turns:
    """Who waits for a turn, on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Turn] = deque()

    def wait_for(self, turn: Turn) -> None:
        """Call it behind those that wait already, in a round of the loop of its own."""
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next)

    @property
    def is_busy(self) -> bool:
        """Somebody waits for a turn."""
        return bool(self._waiting)

    async def mine(self) -> None:
        """Come back in a turn of one's own."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        self.wait_for(partial(_wake, waiting))
        await waiting

    def _next(self) -> None:
        turn = self._waiting[0]
        try:
            turn()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self._loop.call_soon(self._next)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():  # cancelled meanwhile
        waiting.set_result(None)


_turns: tuple[asyncio.AbstractEventLoop, Turns] | None = None


def turns_on(loop: asyncio.AbstractEventLoop) -> Turns:
    """Those of the strangers on a loop; a process serves on one."""
    global _turns
    if _turns is None or _turns[0] is not loop:
        _turns = (loop, Turns(loop))
    return _turns[1]
