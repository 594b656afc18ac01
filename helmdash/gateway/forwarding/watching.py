"""Noticing that a client has left, while its call is under way."""

from __future__ import annotations

import asyncio

from helmdash.doors.asgi import Receive


class ClientWatch:
    """Cancels the task that made it when the client hangs up.

    A task that waits beside the call costs less than racing each wait against the hang-up, and
    sees it in every phase: before the upstream has answered, and between two chunks.
    """

    def __init__(self, receive: Receive) -> None:
        self.has_left = False
        self._receive = receive
        self._owner = asyncio.current_task()
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(self._wait())

    def stop(self) -> None:
        """Stop watching: before the last byte, for a server says "left" after that one, too."""
        # Let go of it, too: a cancelled task holds its frames, and these hold this watch. Such a
        # ring with all that hangs on a request would stay until the next collection of garbage.
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _wait(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.has_left = True
                if self._owner is not None:
                    self._owner.cancel()
                return
