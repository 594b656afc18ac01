"""The other side: an ASGI application that is served to one process, over its socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import orjson

from helmdash.heavy import frames
from helmdash.heavy.frames import FORWARDER_KEY, App, Message, Scope

log = logging.getLogger(__name__)

_end_turn: ContextVar[Callable[[], None] | None] = ContextVar("_end_turn", default=None)


def end_turn() -> None:
    """Say that what is left of this request is waiting, for a model most likely, and not work.

    The next heavy request then begins. Costs nothing where the request is not a heavy one.
    """
    end = _end_turn.get()
    if end is not None:
        end()


class Server:
    """Answers the requests of one connection each."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close its connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            scope, body = await frames.read_request(reader)
            await self._run(scope, body, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # nobody is there to be told
        except Exception:
            log.exception("a large request failed")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _run(
        self, scope: Scope, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        request = _Request(body, writer)
        # From a thread, too, where a view has gone on.
        _end_turn.set(lambda: _soon(loop, request.end_turn))
        work = loop.create_task(self._application(scope, request))
        listening = loop.create_task(_listen(reader, request, work))
        try:
            await work
        except asyncio.CancelledError:
            pass  # told to stop, and the application did not answer
        finally:
            listening.cancel()
            with contextlib.suppress(OSError):
                await writer.drain()

    async def _application(self, scope: Scope, request: _Request) -> None:
        # Here nothing is handed on.
        await self._app({**scope, FORWARDER_KEY: None}, request.receive, request.send)

    async def finish(self, seconds: float) -> None:
        """Wait so long for what is under way."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)


class _Request:
    """The two ends that the application holds."""

    def __init__(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        self._body: bytes | None = body
        self._writer = writer
        self._has_turn = True
        self.left = asyncio.Event()

    async def receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.left.is_set():
            return
        if message["type"] == "http.response.start":
            self.end_turn()
            told = {
                "status": message["status"],
                "headers": frames.headers_out(message.get("headers", ())),
            }
            frames.write_frame(self._writer, frames.BEGIN, orjson.dumps(told))
        elif message["type"] == "http.response.body":
            goes_on = message.get("more_body", False)
            kind = frames.CHUNK if goes_on else frames.END
            frames.write_frame(self._writer, kind, bytes(message.get("body", b"")))
        await self._writer.drain()

    def end_turn(self) -> None:
        if self._has_turn and not self.left.is_set():
            self._has_turn = False
            frames.write_frame(self._writer, frames.TURN_OVER)


async def _listen(reader: asyncio.StreamReader, request: _Request, work: asyncio.Task[Any]) -> None:
    """Notice that the client has left, or that its server is told to stop."""
    try:
        while (await frames.read_frame(reader))[0] != frames.STOP:
            pass
        work.cancel()
    except (OSError, asyncio.IncompleteReadError):
        request.left.set()


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(call)
