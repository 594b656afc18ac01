"""An answer that somebody else may give than the application that was asked for it."""

from __future__ import annotations

from helmdash.doors.asgi import Message, Send


class ClosableSend:
    """An application's way to its client: can be closed until the application begins its answer.

    What is sent after that is dropped, so that whoever closed it answers alone.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_closed = False
        self.has_begun = False

    async def send(self, message: Message) -> None:
        """Pass a message on to the client, or drop it."""
        if not self._is_closed:
            self.has_begun = True
            await self._send(message)

    def close(self) -> bool:
        """Let nothing more through; False, and nothing done, where the answer has begun."""
        self._is_closed = not self.has_begun
        return self._is_closed
