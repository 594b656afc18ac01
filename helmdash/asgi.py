"""The ASGI application: the gateway, static files, and Django behind a limit on bodies."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from typing import cast

from django.core.asgi import get_asgi_application
from servestatic import ServeStaticASGI

from helmdash.gateway.asgi import App, Message, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helmdash.settings")
_django = get_asgi_application()

# What follows needs Django's models, which are there from now on.
from helmdash.api.fast import FastReports, replay  # noqa: E402
from helmdash.gateway.app import Gateway  # noqa: E402
from helmdash.operations.recorder import recorder, start, stop  # noqa: E402
from helmdash.upstream.client import UpstreamClient  # noqa: E402

# What waits to be stored when the server stops; the rest stays in the spool for the next start.
DRAIN_SECONDS = 8.0
# How long the thread that stores may keep the loop from going on. Python's 5 ms is longer than all
# that the gateway does for a call.
_SWITCH_SECONDS = 0.002
# A call drops its objects by itself, but for those that wait to be stored: Python would look
# through these again and again, for a tenth of all it does.
_GARBAGE_AFTER = 50_000


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
        await self._app(scope, replay(body, receive), send)

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


class House:
    """All faces under one roof; owns what starts and stops with the server (lifespan)."""

    def __init__(self, rest: App, limit_bytes: int) -> None:
        self._rest = rest
        self._limit_bytes = limit_bytes
        self._gateway: Gateway | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._open_gateway()(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def _open_gateway(self) -> Gateway:
        """Made on the loop it works on, at the first request or when the server starts."""
        if self._gateway is None:
            self._gateway = Gateway(
                recorder=recorder(),
                client=UpstreamClient(),
                limit_bytes=self._limit_bytes,
                rest=self._rest,
            )
        return self._gateway

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                sys.setswitchinterval(_SWITCH_SECONDS)
                await asyncio.to_thread(start)
                self._open_gateway()
                # What is loaded by now stays: looking through it again and again finds no garbage.
                gc.collect()
                gc.freeze()
                gc.set_threshold(_GARBAGE_AFTER, 50, 100)
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if self._gateway is not None:
                    await self._gateway.aclose()
                # Everything that was answered is stored, or lies in the spool, before we go.
                await asyncio.to_thread(stop, DRAIN_SECONDS)
                await send({"type": "lifespan.shutdown.complete"})
                return


def _build() -> App:
    from django.conf import settings

    from helmdash.operations.holding import hold_database_open

    hold_database_open()
    limit_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    pages = ServeStaticASGI(
        BodyLimit(FastReports(cast("App", _django)), limit_bytes),
        root=str(settings.STATIC_ROOT),
        prefix=settings.STATIC_URL.strip("/") + "/",
        # The manifest storage puts a hash of the contents into each name.
        immutable_file_test=r"^.+\.[0-9a-f]{12}\..+$",
    )
    return House(cast("App", pages), limit_bytes)


application = _build()
