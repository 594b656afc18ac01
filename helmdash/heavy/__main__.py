"""`python -m helmdash.heavy FD MODULE:NAME`: serve an ASGI application on a listening socket.

Started by `helmdash.heavy.worker`, and ended by it: when standard input closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from importlib import import_module
from typing import Any

from helmdash.heavy.frames import App, Message
from helmdash.heavy.serving import Server

# Below the process that clients wait for, where both want the same core.
_NICE = 5
# The clients' process has waited before it asked for the end; what still runs is not worth more.
_FINISH_S = 5.0


class _Lifespan:
    """The application's start and end, as servers tell it of them."""

    def __init__(self, app: App) -> None:
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        run: Any = app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._receive, self._send)
        self._task = asyncio.ensure_future(run)

    async def tell(self, what: str) -> None:
        """Tell of the start or the end, and wait until it is done. Raises what that raises."""
        await self._waiting.put({"type": f"lifespan.{what}"})
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            await self._task

    async def _receive(self) -> Message:
        return await self._waiting.get()

    async def _send(self, message: Message) -> None:
        await self._answers.put(message)


async def _serve(listener: socket.socket, app: App) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), _note_end, ended)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Sent to all processes of a service at once: the other one ends this one in order.
        loop.add_signal_handler(number, lambda: None)
    lifespan = _Lifespan(app)
    await lifespan.tell("startup")
    server = Server(app)
    listening = await asyncio.start_unix_server(server.answer, sock=listener)
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())
    listening.close()
    await server.finish(_FINISH_S)
    await lifespan.tell("shutdown")


def _note_end(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        ended.set()


def main() -> None:
    """Serve until standard input closes."""
    handle, place = sys.argv[1:]
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    listener = socket.socket(fileno=int(handle))
    listener.setblocking(False)
    module, _, name = place.partition(":")
    app: App = getattr(import_module(module), name)
    with contextlib.suppress(ImportError):  # there is none for every platform
        import_module("uvloop").install()
    asyncio.run(_serve(listener, app))


if __name__ == "__main__":
    main()
