"""Large request bodies, whose writing is bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import aiohttp
import httpx
from aiohttp.abc import AbstractStreamWriter

# Bodies up to here fit into the buffers of the connection: writing them cannot hang.
BUFFERED_BYTES = 64 * 1024


class Upload(aiohttp.Payload):
    """A large body, written piece by piece; only the writing of it is bounded, nothing after it.

    aiohttp would wait for ever for a peer that stops reading.
    """

    def __init__(self, body: bytes, seconds: float) -> None:
        super().__init__(body)
        self._size = len(body)
        self._seconds = seconds
        self._limit: asyncio.Timeout | None = None

    async def send(self, request: Awaitable[aiohttp.ClientResponse]) -> aiohttp.ClientResponse:
        """Wait for the request that this is the body of. Raises httpx.WriteTimeout."""
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                self._limit = limit
                return await request
        except TimeoutError as error:
            if limit.expired():
                raise httpx.WriteTimeout("write") from error
            raise
        finally:
            self._limit = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole body as text, which aiohttp's interface of a payload wants. Raises
        UnicodeDecodeError."""
        body: bytes = self._value
        return body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write it all. What is given up on is let go of at once.

        A connection that is merely closed would keep trying to send what it holds.
        """
        # Now, for aiohttp has forgotten it by the time it cancels this.
        transport = getattr(writer, "transport", None)
        try:
            for start in range(0, len(self._value), BUFFERED_BYTES):
                await writer.write(self._value[start : start + BUFFERED_BYTES])
        except BaseException:
            if transport is not None:
                transport.abort()
            raise
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(None)
