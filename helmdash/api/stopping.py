"""Clients that wait for Django while the server stops are told so, instead of being cut off.

uvicorn cancels what is still under way after HELMDASH_STOP_SECONDS and would answer 500 in plain
text. A plan may take longer than that.
"""

from __future__ import annotations

import asyncio
import json

from helmdash.api.problems import CONTENT_TYPE, KINDS, RETRY_AFTER_SECONDS, Code
from helmdash.doors.asgi import App, Message, Receive, Scope, Send
from helmdash.doors.closable import ClosableSend

_SENTENCE = f"HelmDash is stopping. Try again in {RETRY_AFTER_SECONDS} seconds."


class ShutdownMiddleware:
    """The ASGI application `app`, which is let to end by itself when the server cancels it.

    Its client gets a 503 at once, if its answer has not begun; to `app` it is a client that left.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = ClosableSend(send)
        work = asyncio.ensure_future(_run(self._app, scope, receive, answer.send))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if work.done() or not answer.close():
                work.cancel()
                raise
            # Kept, lest it be collected; its end is awaited by nobody.
            self._ending.add(work)
            work.add_done_callback(self._forget)
            for message in _goodbye():
                await send(message)

    def _forget(self, work: asyncio.Task[None]) -> None:
        self._ending.discard(work)
        if not work.cancelled():
            work.exception()  # it has been logged where it was raised


async def _run(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _goodbye() -> tuple[Message, ...]:
    kind = KINDS[Code.UNAVAILABLE]
    problem = {
        "type": f"/api/v1/docs#{Code.UNAVAILABLE.value}",
        "title": kind.title,
        "status": kind.status,
        "detail": _SENTENCE,
        "code": Code.UNAVAILABLE.value,
    }
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"retry-after", str(RETRY_AFTER_SECONDS).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    return (
        {"type": "http.response.start", "status": kind.status, "headers": headers},
        {"type": "http.response.body", "body": json.dumps(problem).encode()},
    )
