"""The ASGI application: static files, a limit on bodies, and Django behind them."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from django.core.asgi import get_asgi_application
from servestatic import ServeStaticASGI

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helmdash.settings")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Answers 413 to a body that is too large before anything spools it to disk.

    Django reads a whole body first and judges it afterwards, so an endless one would fill the disk.
    """

    def __init__(self, app: App, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_declared_too_large(scope):
            await self._refuse(send)
            return
        body = await self._read(receive)
        if body is None:
            await self._refuse(send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _is_declared_too_large(self, scope: Scope) -> bool:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value) > self._limit_bytes
        return False

    async def _read(self, receive: Receive) -> list[Message] | None:
        """The messages of the body, or None as soon as they exceed the limit."""
        messages: list[Message] = []
        total = 0
        while True:
            message = await receive()
            messages.append(message)
            if message["type"] != "http.request":
                return messages
            total += len(message.get("body", b""))
            if total > self._limit_bytes:
                return None
            if not message.get("more_body", False):
                return messages

    async def _refuse(self, send: Send) -> None:
        problem = {
            "type": "/api/v1/docs#body_too_large",
            "title": "Request body too large",
            "status": 413,
            "detail": f"A body may have at most {self._limit_bytes} bytes "
            "(HELMDASH_MAX_BODY_BYTES). Send it in smaller parts.",
            "code": "body_too_large",
        }
        headers = [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(problem).encode()})


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = list(reversed(messages))

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _build() -> App:
    django = get_asgi_application()
    from django.conf import settings

    from helmdash.operations.holding import hold_database_open

    hold_database_open()
    return ServeStaticASGI(  # type: ignore[no-any-return]
        BodyLimit(cast("App", django), settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
        root=str(settings.STATIC_ROOT),
        prefix=settings.STATIC_URL.strip("/") + "/",
        # The manifest storage puts a hash of the contents into each name.
        immutable_file_test=r"^.+\.[0-9a-f]{12}\..+$",
    )


application = _build()
