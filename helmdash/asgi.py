"""The ASGI application: the gateway, static files, and Django behind the door of doors.front."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.asgi import get_asgi_application
from servestatic import ServeStaticASGI

from helmdash.doors.asgi import App, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "helmdash.settings")
_django = get_asgi_application()

# What follows needs Django's models, which are there from now on.
from django.db import connections  # noqa: E402

from helmdash import conf, exporting, notifier  # noqa: E402
from helmdash.api.fast import FastReports  # noqa: E402
from helmdash.api.stopping import ShutdownMiddleware  # noqa: E402
from helmdash.cli.orphans import end_with_parent  # noqa: E402
from helmdash.core.access.client_address import parse_networks  # noqa: E402
from helmdash.doors.body import Bodies, Limits  # noqa: E402
from helmdash.doors.callers.directory import Directory  # noqa: E402
from helmdash.doors.callers.knocks import Knocks  # noqa: E402
from helmdash.doors.callers.proxies import behind_proxies  # noqa: E402
from helmdash.doors.callers.sessions import Sessions  # noqa: E402
from helmdash.doors.front import Front  # noqa: E402
from helmdash.doors.patience import DatabaseWatch, Patient  # noqa: E402
from helmdash.gateway.app import Gateway  # noqa: E402
from helmdash.heavy import FORWARDER_KEY, WorkerForwarder  # noqa: E402
from helmdash.huge_pages import use_huge_pages_once  # noqa: E402
from helmdash.mcp.app import McpApp  # noqa: E402
from helmdash.operations.jobs import kinds as jobs  # noqa: E402
from helmdash.operations.recorder import recorder, start, stop  # noqa: E402
from helmdash.otlp.app import OtlpApp  # noqa: E402
from helmdash.otlp.signals import SIGNALS  # noqa: E402
from helmdash.pages.middleware import lead_to_sign_in  # noqa: E402
from helmdash.pages.stream import LIVE_PATH, Streams  # noqa: E402
from helmdash.shared_heaps import share_heaps  # noqa: E402
from helmdash.upstream.client import UpstreamClient  # noqa: E402
from helmdash.upstream.listings import Listings  # noqa: E402
from helmdash.upstream.sharing import SHARED_KEY, Shared  # noqa: E402

# What waits to be stored when the server stops; the rest stays in the spool for the next start.
DRAIN_SECONDS = 8.0
# What the step of a job that is under way has to come to its end; then its lease runs out.
_JOBS_SECONDS = 2.0
# What plans in the background have to come to an end; then they are cancelled, and say so.
_BACKGROUND_SECONDS = 5.0
# The sign-in form is a few hundred bytes: whoever takes longer for it keeps others from theirs.
_ANONYMOUS_BODY_SECONDS = 15.0
_MCP_PATHS = ("/mcp", "/mcp/")
# How long a thread may keep the loop from going on, at each of the four rounds or so that a call
# takes. Python's 5 ms is longer than all that the gateway does for a call.
_SWITCH_SECONDS = 0.0005
# A call drops its objects by itself, but for those that wait to be stored: Python would look
# through these again and again, for a tenth of all it does.
_GARBAGE_AFTER = 50_000
# Whoever has answered so many goes on doing so.
_WORTH_HUGE_PAGES = 1_000
# So often until what outlived a look is looked at again: what such a time leaves is some megabytes.
_LOOKS_UNTIL_OLDER = 10


async def _as_a_request(work: Awaitable[object]) -> None:
    """Run work with a thread and a connection of its own, as Django runs each request."""
    async with ThreadSensitiveContext():
        try:
            await work
        finally:
            await sync_to_async(connections.close_all)()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What one server process has of each, on its event loop."""

    shared: Shared
    directory: Directory
    sessions: Sessions
    watch: DatabaseWatch
    knocks: Knocks
    gateway: Gateway
    mcp: McpApp
    otlp: OtlpApp
    streams: Streams
    forwarder: WorkerForwarder

    def app_of(self, path: str) -> App:
        """What answers at an address: nearly all of them pass the gateway first."""
        if path == LIVE_PATH:
            return self.streams
        if path in SIGNALS:
            return self.otlp
        return self.mcp if path in _MCP_PATHS else self.gateway


class Application:
    """All faces as one ASGI application; owns what starts and stops with the server (lifespan)."""

    def __init__(self, rest: App, limits: Limits) -> None:
        self._rest = rest
        self._limits = limits
        self._services: Services | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            services = self._services or self._open_services()
            scope[SHARED_KEY] = services.shared
            scope.setdefault(FORWARDER_KEY, services.forwarder)
            await services.app_of(scope["path"])(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def _open_services(self) -> Services:
        """Made on the loop they work on, at the first request or when the server starts."""
        client = UpstreamClient()
        shared = Shared(client, Listings(client), around=_as_a_request)
        directory = Directory()
        sessions = Sessions()
        bodies = Bodies(self._limits)
        watch = DatabaseWatch()
        knocks = Knocks()
        front = Front(
            app=Patient(self._rest, watch),
            directory=directory,
            sessions=sessions,
            bodies=bodies,
            turn_away=lead_to_sign_in,
        )
        gateway = Gateway(
            recorder=recorder(),
            client=client,
            listings=shared.listings,
            directory=directory,
            bodies=bodies,
            knocks=knocks,
            rest=front,
        )
        mcp = McpApp(
            directory=directory,
            bodies=bodies,
            watch=watch,
            limit_bytes=self._limits.body_bytes,
        )
        self._services = Services(
            shared=shared,
            directory=directory,
            sessions=sessions,
            watch=watch,
            knocks=knocks,
            gateway=gateway,
            mcp=mcp,
            otlp=OtlpApp(recorder=recorder(), directory=directory, bodies=bodies, knocks=knocks),
            streams=Streams(sessions),
            # It costs nothing before the first heavy request; in its worker it is never used.
            forwarder=WorkerForwarder("helmdash.asgi:application"),
        )
        return self._services

    async def _close_services(self) -> None:
        """First who asks upstreams, then what they ask through."""
        services, self._services = self._services, None
        if services is None:
            return
        await services.forwarder.stop()
        await services.mcp.stop()
        await services.shared.stop(_BACKGROUND_SECONDS)
        services.streams.close()
        services.gateway.close()
        services.otlp.close()
        services.directory.close()
        services.sessions.close()
        services.watch.close()
        await services.knocks.close()
        await services.shared.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        enlarging: asyncio.Task[None] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                sys.setswitchinterval(_SWITCH_SECONDS)
                share_heaps()
                end_with_parent()
                await asyncio.to_thread(start)
                jobs.start(sending=notifier.opened)
                await asyncio.to_thread(exporting.start)
                services = self._open_services()
                await services.mcp.start()
                # What is loaded by now stays: looking through it again and again finds no garbage.
                gc.collect()
                gc.freeze()
                gc.set_threshold(_GARBAGE_AFTER, _LOOKS_UNTIL_OLDER, 100)
                enlarging = asyncio.create_task(use_huge_pages_once(_has_taken_many_calls))
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if enlarging is not None:
                    enlarging.cancel()
                await self._close_services()
                await asyncio.to_thread(jobs.stop, _JOBS_SECONDS)
                await asyncio.to_thread(exporting.stop, _JOBS_SECONDS)
                # Everything that was answered is stored, or lies in the spool, before we go.
                await asyncio.to_thread(stop, DRAIN_SECONDS)
                await send({"type": "lifespan.shutdown.complete"})
                return


def _has_taken_many_calls() -> bool:
    return recorder().own_ledger().counts.accepted >= _WORTH_HUGE_PAGES


def _build() -> App:
    from django.conf import settings

    from helmdash.operations.database.sqlite_file import hold_database_open

    hold_database_open()
    pages = ServeStaticASGI(
        FastReports(ShutdownMiddleware(cast("App", _django))),
        root=str(settings.STATIC_ROOT),
        prefix=settings.STATIC_URL.strip("/") + "/",
        # The manifest storage puts a hash of the contents into each name.
        immutable_file_test=r"^.+\.[0-9a-f]{12}\..+$",
        # `up` alone fills that folder. To ask of each of its 756 files where it really lies was
        # half of what looking through them takes at each start.
        allow_unsafe_symlinks=True,
    )
    env = conf.env()
    limits = Limits(
        body_bytes=env.max_body_bytes,
        anonymous_bytes=min(env.max_anonymous_body_bytes, env.max_body_bytes),
        all_bytes=env.body_memory_bytes,
        seconds=env.body_seconds,
        anonymous_seconds=min(_ANONYMOUS_BODY_SECONDS, env.body_seconds),
    )
    app = Application(cast("App", pages), limits)
    return behind_proxies(app, parse_networks(env.trusted_proxies))


application = _build()
