"""Who is next: heavy requests take turns, and no owner of a key is served twice before another."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Two cores: one for heavy work, and one for everybody else. A second heavy request is let in so
# that one which waits (for the database, for its model's answer) holds up nobody.
_MOST_AT_ONCE = 2
# Of one owner, beside the one at work; who sends more at once is told to come back. In all, as
# many as fit into the bytes that bodies may hold, if they are a MiB each.
MOST_WAITING_OF_ONE = 16
_MOST_WAITING = 64
# The longest turn that was measured is under a second; a second later there may be room.
RETRY_AFTER_S = 2


class TooManyWaiting(Exception):
    """There are too many heavy requests already. `is_own`: of this owner, rather than of all."""

    def __init__(self, *, is_own: bool) -> None:
        self.is_own = is_own
        self.retry_after_s = RETRY_AFTER_S
        whose = "of this key" if is_own else "of all clients"
        super().__init__(
            f"Too many large requests {whose} wait already. "
            f"Try again in {RETRY_AFTER_S} seconds, or send fewer at once."
        )


class Turn:
    """The right to be worked on; given back once, by `end`."""

    def __init__(self, turns: Turns, owner: str) -> None:
        self._turns: Turns | None = turns
        self._owner = owner

    def end(self) -> None:
        """Let the next one begin. Does nothing the second time."""
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.leave(self._owner)


class Turns:
    """One for each process. Used on one event loop."""

    def __init__(self, most_at_once: int = _MOST_AT_ONCE) -> None:
        self._most_at_once = most_at_once
        self._at_work: set[str] = set()
        # Owners in the order of their next turn, each with those of its requests that wait.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._count = 0

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[Turn]:
        """Wait for a turn, which ends with the block at the latest. Raises TooManyWaiting."""
        await self._wait(owner)
        turn = Turn(self, owner)
        try:
            yield turn
        finally:
            turn.end()

    def leave(self, owner: str) -> None:
        """End the owner's turn, and begin that of whoever has waited the longest."""
        self._at_work.discard(owner)
        if owner in self._waiting:
            self._waiting.move_to_end(owner)  # the others come first
        self._call_next()

    async def _wait(self, owner: str) -> None:
        queue = self._waiting.get(owner, ())
        if len(queue) >= MOST_WAITING_OF_ONE:
            raise TooManyWaiting(is_own=True)
        if self._count >= _MOST_WAITING:
            raise TooManyWaiting(is_own=False)
        called = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(called)
        self._count += 1
        self._call_next()
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self.leave(owner)  # it was called at the very moment its client left
            else:
                self._forget(owner, called)
            raise

    def _call_next(self) -> None:
        """Call whoever has waited longest of those who are not at work already."""
        for owner in [owner for owner in self._waiting if owner not in self._at_work]:
            if len(self._at_work) >= self._most_at_once:
                return
            called = self._first(owner)
            if called is not None:
                self._at_work.add(owner)
                called.set_result(None)

    def _first(self, owner: str) -> asyncio.Future[None] | None:
        """Take an owner's first request that has not left: it may not have said so yet."""
        for waiting in [*self._waiting[owner]]:
            self._forget(owner, waiting)
            if not waiting.done():
                return waiting
        return None

    def _forget(self, owner: str, called: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner, deque())
        if called not in queue:
            return
        queue.remove(called)
        self._count -= 1
        if not queue:
            del self._waiting[owner]
