"""Reports of calls, answered beside Django: no middleware, no thread that waits for the commit.

Everything that says something is Django's views' own code: keys and scopes (auth), what a body must
look like (parsing, schemas), the answers (reporting) and the problems. Whatever is not plainly a
good report goes to Django unread, as if this door were not there: another method, a query, no key,
a wrong body, a recorder that is full. So there is one place that refuses, and it is not here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

from csp.middleware import CSPMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils import timezone

from helmdash.api.auth import Access, Needs
from helmdash.api.handlers import problem_of
from helmdash.api.idempotency import HEADER
from helmdash.api.problems import problem_response
from helmdash.api.reporting import Report, read_many, read_single
from helmdash.api.responding import answer
from helmdash.doors.answers import Header, raw_headers, send_at_once
from helmdash.doors.asgi import App, Receive, Scope, Send, connection_of
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.doors.front import BODY_KEY, KEY_CONTEXT_KEY
from helmdash.heavy import is_quick
from helmdash.operations.database.sqlite_file import give_back
from helmdash.operations.recorder import RecorderFull, recorder

logger = logging.getLogger(__name__)

_READERS: dict[str, Callable[..., Report]] = {
    "/api/v1/calls": read_single,
    "/api/v1/calls/batch": read_many,
}
_IDEMPOTENCY_KEY = HEADER.lower().encode()
_may_record = Needs("record")
# They look keys up and check bodies; two cores have no use for more.
_THREADS = 4
# A body up to this size is checked by the event loop: some 40 us for a good one, single
# milliseconds for the worst found, and to hand it to a thread costs more than either side of that.
# Of longer ones it takes a lone client's (30 kB, in turns: 286 instead of 235 a second on SQLite,
# 273 instead of 175 on PostgreSQL); of many clients' reports the threads make larger groups.
_SMALL_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class _Ready:
    """A report that may be stored, and when it was read."""

    access: Access
    report: Report
    at: datetime


class _Whole(NamedTuple):
    """An answer; its length is not among the headers."""

    status: int
    headers: list[Header]
    body: bytes


class FastReports:
    """The ASGI application `app`, with `POST /calls` and `POST /calls/batch` taken out.

    Stands behind helmdash.doors.front, which has read the body, of a caller whose key is good.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._under_way = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="reports")

    def close(self) -> None:
        """End the threads, and with them their connections."""
        self._threads.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not _is_report(scope):
            await self._app(scope, receive, send)
            return
        request = ASGIRequest(scope, BytesIO(scope[BODY_KEY]))
        self._under_way += 1
        try:
            whole = await self._answer(request)
        finally:
            self._under_way -= 1
        if whole is None:
            await self._app(scope, receive, send)
            return
        await send_at_once(connection_of(scope), send, *whole)

    async def _answer(self, request: ASGIRequest) -> _Whole | None:
        """The answer; None when it is Django's to give."""
        is_small = _is_small(request.scope, is_lone=self._under_way == 1)
        if is_small:
            ready = _prepare(request)
        else:
            loop = asyncio.get_running_loop()
            ready = await loop.run_in_executor(self._threads, _prepare_in_thread, request)
        if ready is None:
            return None
        try:
            answers = recorder().record(
                project=ready.access.project,
                captures=ready.report.captures,
                caller=ready.access.name,
                now=ready.at,
                size=ready.report.size,
                on_loop=is_small,
            )
        except RecorderFull:
            return None
        try:
            recorded = await recorder().answered(answers)
            told = ready.report.respond(recorded)
            return _Whole(told.status, _usual_headers(), dump_json(told.value))
        except Exception as error:
            response = problem_response(request, problem_of(error))
            return _Whole(response.status_code, _headers_of(response), response.content)


def _is_small(scope: Mapping[str, Any], *, is_lone: bool) -> bool:
    """Whether the loop looks at a report itself: it is short, or alone and soon read, and the door
    knows who calls."""
    body = scope[BODY_KEY]
    return KEY_CONTEXT_KEY in scope and (len(body) <= _SMALL_BYTES or (is_lone and is_quick(body)))


def _prepare_in_thread(request: ASGIRequest) -> _Ready | None:
    try:
        return _prepare(request)
    finally:
        give_back()


def _prepare(request: ASGIRequest) -> _Ready | None:
    """Who calls, and what they report; None when Django has to say no.

    Nothing of it asks the database, which may be away: the door knows who calls. Without that door
    the key is looked up here, which is for a thread.
    """
    try:
        request.get_host()
        access, now = _may_record(request), timezone.now()
        read = _READERS[request.path]
        return _Ready(access, read(request, access=access, at=now), now)
    except Exception:
        # Django meets the same and says so.
        return None


def _is_report(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] == "POST"
        and scope["path"] in _READERS
        and not scope["query_string"]
        # Django's views look after it.
        and not any(name == _IDEMPOTENCY_KEY for name, _ in scope["headers"])
        and not scope.get("root_path")
        and BODY_KEY in scope
        and recorder().is_started
    )


@cache
def _usual_headers() -> list[Header]:
    """Those of every good answer but its length: they are the same each time."""
    return _headers_of(answer(None))


def _headers_of(response: HttpResponse) -> list[Header]:
    """With what the middleware adds to every answer of the API."""

    def respond(request: HttpRequest) -> HttpResponse:
        return response

    for middleware in (SecurityMiddleware, CSPMiddleware, XFrameOptionsMiddleware):
        middleware(respond).process_response(HttpRequest(), response)
    return raw_headers(response)
