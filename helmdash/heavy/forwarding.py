"""Handing a request to the worker, and its answer to the client."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Mapping
from typing import Any

import orjson

from helmdash.heavy import frames
from helmdash.heavy.frames import FORWARDER_KEY, Receive, Scope, Send
from helmdash.heavy.turns import Turn, Turns
from helmdash.heavy.worker import Worker

log = logging.getLogger(__name__)

# What a cancelled request has for saying so to its client.
_GOODBYE_S = 2.0
# Where a request says who sends it; a browser does so by its session.
_WHO = (b"authorization", b"x-api-key", b"x-goog-api-key", b"cookie")
_GONE = (OSError, asyncio.IncompleteReadError)


class NoWorker(Exception):
    """The worker cannot be reached, or ended before it answered. The request may be sent again."""

    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("The part of HelmDash that takes large requests has failed. Try again.")


class WorkerForwarder:
    """One for each process that serves clients. Used on one event loop."""

    def __init__(self, app: str) -> None:
        """`app`: the application that the worker runs, as "module:name"."""
        self._worker = Worker(app)
        self._turns = Turns()

    async def stop(self) -> None:
        """End the worker, when it has finished."""
        await self._worker.stop()

    async def forward(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let the worker answer a request whose body was read; in the turn of who sent it.

        Raises TooManyWaiting and NoWorker before the answer has begun; what breaks off later ends
        the response as it is.
        """
        work = asyncio.create_task(self._answered(scope, body, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel("left")
            await work
        except asyncio.CancelledError:
            if leaving.done():
                return
            # The server stops: the worker tells the client so.
            work.cancel("stop")
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(asyncio.shield(work), _GOODBYE_S)
            raise
        finally:
            leaving.cancel()

    async def _answered(self, scope: Scope, body: bytes, send: Send) -> None:
        async with self._turns.turn(_owner_of(scope)) as turn:
            try:
                reader, writer = await self._worker.connect()
            except _GONE as error:
                log.error("the worker for large requests cannot be started: %s", error)
                raise NoWorker from error
            is_good = False
            try:
                is_good = await self._exchange(scope, body, send, turn, reader, writer)
            finally:
                self._worker.release(writer, is_good=is_good)

    async def _exchange(
        self,
        scope: Scope,
        body: bytes,
        send: Send,
        turn: Turn,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        relay = _Relay(send, turn, reader)
        try:
            answer = asyncio.create_task(self._sent_and_relayed(scope, body, relay, writer))
            gone = asyncio.create_task(self._worker.gone())
            try:
                await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    # What it has said before it ended can still be read; a request that waits in
                    # the socket of a process that never took it is not answered by anybody.
                    await asyncio.wait((answer,), timeout=0.1)
                if not answer.done():
                    raise NoWorker
                await answer
            except asyncio.CancelledError as cancelled:
                if "stop" in cancelled.args and not answer.done():
                    frames.write_frame(writer, frames.STOP)
                    await asyncio.wait((answer,), timeout=_GOODBYE_S)
                raise
            finally:
                answer.cancel()
                gone.cancel()
        except _GONE as error:
            if relay.has_begun:
                raise
            raise NoWorker from error
        return True

    async def _sent_and_relayed(
        self, scope: Scope, body: bytes, relay: _Relay, writer: asyncio.StreamWriter
    ) -> None:
        await frames.write_request(writer, scope, body)
        await relay.run()


class _Relay:
    """The worker's answer on its way to the client."""

    def __init__(self, send: Send, turn: Turn, reader: asyncio.StreamReader) -> None:
        self.has_begun = False
        self._send = send
        self._turn = turn
        self._reader = reader

    async def run(self) -> None:
        """Pass on frames until the last one. Raises IncompleteReadError when it does not come."""
        while True:
            kind, data = await frames.read_frame(self._reader)
            if kind == frames.TURN_OVER:
                self._turn.end()
            elif kind == frames.BEGIN:
                self.has_begun = True
                await self._send(_start(data))
            elif kind == frames.CHUNK:
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
            else:
                await self._send({"type": "http.response.body", "body": data})
                return


def _start(data: bytes) -> dict[str, Any]:
    told = orjson.loads(data)
    headers = frames.headers_in(told["headers"])
    return {"type": "http.response.start", "status": told["status"], "headers": headers}


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def forwarder_of(scope: Mapping[str, Any]) -> WorkerForwarder | None:
    """The forwarder of the process that a request came to; None where it does everything itself."""
    found = scope.get(FORWARDER_KEY)
    return found if isinstance(found, WorkerForwarder) else None


def _owner_of(scope: Scope) -> str:
    """A name for whoever sends a request, by what says so: the same at every door."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    said = next((headers[name] for name in _WHO if headers.get(name)), b"")
    return hashlib.blake2b(said, digest_size=16).hexdigest()
