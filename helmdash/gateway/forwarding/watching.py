"""Noticing that a client has left, while its call is under way."""

from __future__ import annotations

import asyncio

from helmdash.doors.asgi import Connection, Receive


class ClientWatch:
    """Cancels the task that made it when the client hangs up, in every phase: before the upstream
    has answered, and between two chunks.

    Our own connections tell of it. Behind any other server a task waits beside the call, which
    costs less than racing each wait against the hang-up.
    """

    def __init__(self, receive: Receive, connection: Connection | None = None) -> None:
        self.has_left = False
        self._owner = asyncio.current_task()
        self._connection = connection
        self._task: asyncio.Task[None] | None = None
        if connection is not None:
            connection.when_left(self._note_left)
        else:
            self._task = asyncio.get_running_loop().create_task(self._wait(receive))

    def stop(self) -> None:
        """Stop watching: before the last byte, for a server says "left" after that one, too."""
        if self._connection is not None:
            self._connection.when_left(None)
            self._connection = None
        # Let go of it, too: a cancelled task holds its frames, and these hold this watch. Such a
        # ring with all that hangs on a request would stay until the next collection of garbage.
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _note_left(self) -> None:
        self.has_left = True
        if self._owner is not None:
            self._owner.cancel()

    async def _wait(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._note_left()
