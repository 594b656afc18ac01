"""The ASGI application: the gateway, static files, and Django behind a limit on bodies."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.asgi import get_asgi_application
from servestatic import ServeStaticASGI

from helmdash.doors.asgi import App, Message, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helmdash.settings")
_django = get_asgi_application()

# What follows needs Django's models, which are there from now on.
from django.db import connections  # noqa: E402

from helmdash import conf  # noqa: E402
from helmdash.api.fast import FastReports, replay  # noqa: E402
from helmdash.api.stopping import ToldOfStop  # noqa: E402
from helmdash.core.client_address import parse_networks  # noqa: E402
from helmdash.doors.directory import Directory  # noqa: E402
from helmdash.doors.faults import Fault  # noqa: E402
from helmdash.doors.heavy import is_handed_on  # noqa: E402
from helmdash.doors.proxies import behind_proxies  # noqa: E402
from helmdash.gateway.app import Gateway  # noqa: E402
from helmdash.heavy import FORWARDER_KEY, Forwarder  # noqa: E402
from helmdash.mcp.app import McpApp  # noqa: E402
from helmdash.operations.recorder import recorder, start, stop  # noqa: E402
from helmdash.upstream.client import UpstreamClient  # noqa: E402
from helmdash.upstream.listings import Listings  # noqa: E402
from helmdash.upstream.sharing import SHARED_KEY, Shared  # noqa: E402

# What waits to be stored when the server stops; the rest stays in the spool for the next start.
DRAIN_SECONDS = 8.0
# What plans in the background have to come to an end; then they are cancelled, and say so.
_BACKGROUND_SECONDS = 5.0
_MCP_PATHS = ("/mcp", "/mcp/")
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
        try:
            whole = b"".join(message.get("body", b"") for message in body)
            if await is_handed_on(scope, whole, receive, send):
                return
        except Fault as fault:
            await _tell(send, fault)
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


async def _tell(send: Send, fault: Fault) -> None:
    """A fault as a problem (RFC 9457)."""
    problem = {
        "type": f"/api/v1/docs#{fault.code}",
        "title": HTTPStatus(fault.status).phrase,
        "status": fault.status,
        "detail": str(fault),
        "code": fault.code,
    }
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    if fault.retry_after_s is not None:
        headers.append((b"retry-after", str(fault.retry_after_s).encode()))
    await send({"type": "http.response.start", "status": fault.status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})


async def _as_a_request(work: Awaitable[object]) -> None:
    """Run work with a thread and a connection of its own, as Django runs each request."""
    async with ThreadSensitiveContext():
        try:
            await work
        finally:
            await sync_to_async(connections.close_all)()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rooms:
    """What stands on the server's event loop."""

    shared: Shared
    directory: Directory
    gateway: Gateway
    mcp: McpApp
    forwarder: Forwarder


class House:
    """All faces under one roof; owns what starts and stops with the server (lifespan)."""

    def __init__(self, rest: App, limit_bytes: int) -> None:
        self._rest = rest
        self._limit_bytes = limit_bytes
        self._rooms: _Rooms | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            rooms = self._rooms or self._open_rooms()
            scope[SHARED_KEY] = rooms.shared
            scope.setdefault(FORWARDER_KEY, rooms.forwarder)
            app = rooms.mcp if scope["path"] in _MCP_PATHS else rooms.gateway
            await app(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def _open_rooms(self) -> _Rooms:
        """Made on the loop they work on, at the first request or when the server starts."""
        client = UpstreamClient()
        shared = Shared(client, Listings(client), around=_as_a_request)
        directory = Directory()
        gateway = Gateway(
            recorder=recorder(),
            client=client,
            listings=shared.listings,
            directory=directory,
            limit_bytes=self._limit_bytes,
            rest=self._rest,
        )
        mcp = McpApp(directory=directory, limit_bytes=self._limit_bytes)
        self._rooms = _Rooms(
            shared=shared,
            directory=directory,
            gateway=gateway,
            mcp=mcp,
            # It costs nothing before the first heavy request; in its worker it is never used.
            forwarder=Forwarder("helmdash.asgi:application"),
        )
        return self._rooms

    async def _close_rooms(self) -> None:
        """First who asks upstreams, then what they ask through."""
        rooms, self._rooms = self._rooms, None
        if rooms is None:
            return
        await rooms.forwarder.stop()
        await rooms.mcp.stop()
        await rooms.shared.stop(_BACKGROUND_SECONDS)
        rooms.gateway.close()
        rooms.directory.close()
        await rooms.shared.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                sys.setswitchinterval(_SWITCH_SECONDS)
                await asyncio.to_thread(start)
                rooms = self._open_rooms()
                await rooms.mcp.start()
                # What is loaded by now stays: looking through it again and again finds no garbage.
                gc.collect()
                gc.freeze()
                gc.set_threshold(_GARBAGE_AFTER, 50, 100)
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self._close_rooms()
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
        BodyLimit(FastReports(ToldOfStop(cast("App", _django))), limit_bytes),
        root=str(settings.STATIC_ROOT),
        prefix=settings.STATIC_URL.strip("/") + "/",
        # The manifest storage puts a hash of the contents into each name.
        immutable_file_test=r"^.+\.[0-9a-f]{12}\..+$",
    )
    house = House(cast("App", pages), limit_bytes)
    return behind_proxies(house, parse_networks(conf.env().trusted_proxies))


application = _build()
