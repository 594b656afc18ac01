"""Reports of calls, answered beside Django: no middleware, no thread that waits for the commit.

Everything that says something is Django's views' own code: keys and scopes (auth), what a body must
look like (parsing, schemas), the answers (reporting) and the problems. Whatever is not plainly a
good report goes to Django unread, as if this door were not there: another method, a query, no key,
a wrong body, a recorder that is full. So there is one place that refuses, and it is not here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any, cast

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
from helmdash.operations.holding import thread_connection
from helmdash.operations.recorder import RecorderFull, recorder

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_READERS: dict[str, Callable[[HttpRequest], Report]] = {
    "/api/v1/calls": read_single,
    "/api/v1/calls/batch": read_many,
}
_KEYS = frozenset({b"authorization", b"x-api-key"})
_IDEMPOTENCY_KEY = HEADER.lower().encode()
_may_record = Needs("record")
# They look keys up and check bodies; two cores have no use for more.
_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Ready:
    """A report that may be stored."""

    access: Access
    report: Report


class FastReports:
    """The ASGI application `app`, with `POST /calls` and `POST /calls/batch` taken out.

    Bodies are read whole: put a limit on them in front (helmdash.asgi.BodyLimit).
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="reports")

    def close(self) -> None:
        """End the threads, and with them their connections."""
        self._threads.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not _is_report(scope):
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        request = None
        response = None
        if body is not None:
            request = ASGIRequest(scope, BytesIO(body))
            response = await self._answer(request)
        if request is None or response is None:
            await self._app(scope, replay(messages, receive), send)
            return
        await _send(send, response)

    async def _answer(self, request: ASGIRequest) -> HttpResponse | None:
        """The answer; None when it is Django's to give."""
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(self._threads, self._prepare, request)
        if ready is None:
            return None
        try:
            answers = recorder().record(
                project=ready.access.project,
                captures=ready.report.captures,
                caller=ready.access.name,
                now=timezone.now(),
            )
        except RecorderFull:
            return None
        try:
            recorded = await recorder().answered(answers)
            response = ready.report.respond(recorded)
        except Exception as error:
            response = problem_response(request, problem_of(error))
        for name, value in _usual_headers():
            response.headers.setdefault(name, value)
        return response

    def _prepare(self, request: ASGIRequest) -> _Ready | None:
        """In a thread: who calls, and what they report; None when Django has to say no."""
        try:
            with thread_connection():
                request.get_host()
                return _Ready(_may_record(request), _READERS[request.path](request))
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
        and any(name in _KEYS for name, _ in scope["headers"])
        and recorder().is_started
    )


async def _read(receive: Receive) -> tuple[list[Message], bytes | None]:
    """The messages of the body, and the body; None when the client left."""
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return messages, None
        if not message.get("more_body", False):
            return messages, b"".join(each.get("body", b"") for each in messages)


def replay(messages: list[Message], receive: Receive) -> Receive:
    """A receive that gives these messages again, and then what else comes."""
    waiting = list(reversed(messages))

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


async def _send(send: Send, response: HttpResponse) -> None:
    response.headers.setdefault("Content-Length", str(len(response.content)))
    headers = [
        (name.lower().encode("ascii"), value.encode("latin-1")) for name, value in response.items()
    ]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


@cache
def _usual_headers() -> tuple[tuple[str, str], ...]:
    """What the middleware adds to every answer of the API; it is the same each time."""

    def nothing(request: HttpRequest) -> HttpResponse:
        return HttpResponse(content_type="application/json")

    request = HttpRequest()
    response = nothing(request)
    before = set(response.headers)
    for middleware in (SecurityMiddleware, CSPMiddleware, XFrameOptionsMiddleware):
        response = cast("HttpResponse", middleware(nothing).process_response(request, response))
    return tuple((name, value) for name, value in response.items() if name not in before)
