"""The gateway as an ASGI application: who asks, what for, and which handler answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from time import monotonic, perf_counter_ns
from typing import Any

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.doors.asgi import (
    App,
    Disconnected,
    Receive,
    Scope,
    Send,
    connection_of,
    headers_of,
    note_known,
)
from helmdash.doors.body import Bodies, is_plain
from helmdash.doors.callers.directory import Directory
from helmdash.doors.callers.keys import admit, admit_again, owner_of
from helmdash.doors.callers.knocks import Knocks
from helmdash.doors.callers.proxies import address_of
from helmdash.doors.faults import BodyPacked, Fault
from helmdash.doors.heavy import is_handed_on
from helmdash.doors.http.unpacking import Coding, coding_of, unpacking
from helmdash.gateway import counting, kept_replies, models
from helmdash.gateway.calls import Calls
from helmdash.gateway.lost import is_lost, turn_back
from helmdash.gateway.refusals import (
    Refusal,
    forbidden,
    not_found,
    refusal_of,
    wrong_method,
)
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.options import (
    RequestOptions,
    options_of,
    parse,
)
from helmdash.gateway.requests.request import GatewayRequest
from helmdash.gateway.requests.routes import Action, Route, find_route
from helmdash.gateway.requests.sizes import check_sizes
from helmdash.gateway.responder import Header, Responder
from helmdash.operations.recorder import Recorder
from helmdash.providers.wire import WireError
from helmdash.queries.access.access import Caller
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.listings import Listings

log = logging.getLogger(__name__)

Handler = Callable[[GatewayRequest, bytes, dict[str, Any], Receive, Responder], Awaitable[None]]

_SCOPE = "record"
_TURNED_AWAY: tuple[Header, ...] = ((b"connection", b"close"),)
_INTERNAL = WireError(
    message="HelmDash failed on this request. Its log says where.",
    code="internal_error",
    type="api_error",
    status=500,
)


class Gateway:
    """Serves the vendors' endpoints, and hands every other request to `rest`.

    One for each process, used on one event loop.
    """

    def __init__(
        self,
        *,
        recorder: Recorder,
        client: UpstreamClient,
        listings: Listings,
        directory: Directory,
        bodies: Bodies,
        knocks: Knocks,
        rest: App,
    ) -> None:
        """All but `rest` are the process's own, and stay open when this is closed."""
        self._rest = rest
        self._client = client
        self._bodies = bodies
        self._knocks = knocks
        self._directory = directory
        self._listings = listings
        self._keepers = ReplyKeepers()
        self._calls = Calls(
            recorder=recorder, client=client, listings=listings, keepers=self._keepers
        )

    def close(self) -> None:
        """End the threads that ask the database; what waits there is given up."""
        self._calls.close()
        self._keepers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_ns = perf_counter_ns()
        headers = headers_of(scope)
        route = find_route(scope["path"], headers, scope["query_string"])
        if route is None or route.action is Action.UNKNOWN:
            if is_lost(scope, headers, is_unknown_route=route is not None):
                await turn_back(scope, headers, send, self._knocks)
            else:
                await self._rest(scope, receive, send)
            return
        responder = Responder(send, route.client, connection_of(scope))
        request: GatewayRequest | None = None
        try:
            request = await self._understand(route, scope, headers, started_ns)
            await self._answer(request, scope, receive, responder)
        except Refusal as refusal:
            await responder.error(
                refusal.error, _before_the_body(refusal, route) if request is None else ()
            )
        except Fault as fault:
            if fault.status == HTTPStatus.UNAUTHORIZED:
                self._note_key(scope, headers, str(fault))
            await responder.error(refusal_of(fault).error, _TURNED_AWAY)
        except Disconnected:
            return
        except Exception:
            log.exception("the gateway failed on a request")
            if not responder.has_begun:
                await responder.error(_INTERNAL)

    def _note_key(self, scope: Scope, headers: Mapping[bytes, bytes], advice: str) -> None:
        self._knocks.note_key(
            method=scope["method"],
            path=scope["path"],
            user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
            advice=advice,
            now=datetime.now(UTC),
        )

    async def _understand(
        self, route: Route, scope: Scope, headers: Mapping[bytes, bytes], started_ns: int
    ) -> GatewayRequest:
        # When it came, as `started_ns` has it: looking its key up may take seconds, and what is
        # reckoned to be over when the client sends its next request would not be.
        started_at = datetime.now(UTC)
        if scope["method"] not in (route.method, route.also):
            raise wrong_method(scope["method"], (route.method, route.also))
        query, admitted_at = _key_query(route, scope), monotonic()
        key_context = await admit(self._directory, headers, query, address=address_of(scope))
        note_known(scope)
        _require_scope(key_context.caller)
        options = options_of(headers)
        _require_project(key_context.caller, options)
        return GatewayRequest(
            route=route,
            key_context=key_context,
            options=options,
            headers=headers,
            started_at=started_at,
            started_ns=started_ns,
            admitted_at=admitted_at,
        )

    async def _answer(
        self, request: GatewayRequest, scope: Scope, receive: Receive, responder: Responder
    ) -> None:
        match request.route.action:
            case Action.CHAT:
                await self._with_body(request, scope, receive, responder, self._calls.chat)
            case Action.EMBED:
                await self._with_body(request, scope, receive, responder, self._calls.embed)
            case Action.COUNT:
                await self._with_body(request, scope, receive, responder, self._count)
            case Action.SHOW_MODEL:
                await self._with_body(request, scope, receive, responder, self._show)
            case Action.LIST_MODELS:
                await models.answer_list(request, responder, self._listings)
            case Action.LIST_RUNNING:
                await models.answer_running(responder)
            case Action.VERSION:
                await models.answer_version(responder)
            case Action.KEPT_REPLY:
                await kept_replies.answer(
                    request, scope, responder, keepers=self._keepers, client=self._client
                )
            case Action.UNKNOWN:
                raise not_found(
                    "The gateway does not serve this endpoint. "
                    "The page /settings/gateway/ lists those it serves."
                )

    async def _with_body(
        self,
        request: GatewayRequest,
        scope: Scope,
        receive: Receive,
        responder: Responder,
        handler: Handler,
    ) -> None:
        owner = owner_of(request.key_context)
        body = self._bodies.at_hand(request.headers, responder.connection, owner=owner)
        if body is not None:  # as of most requests
            try:
                await self._handle(request, body, scope, receive, responder, handler)
            finally:
                self._bodies.release(body, owner=owner)
            return
        coding = _coding_of(request.headers)
        async with AsyncExitStack() as held:
            body = await held.enter_async_context(
                self._bodies.reading(
                    request.headers, receive, owner=owner, may_be_packed=coding is not None
                )
            )
            request = await self._still_admitted(request, scope)
            if coding is not None:
                body = await held.enter_async_context(
                    unpacking(
                        self._bodies,
                        body,
                        coding=coding,
                        owner=owner,
                        most_bytes=self._bodies.body_bytes,
                        is_set=True,
                    )
                )
                scope = _without_packing(scope)
            await self._handle(request, body, scope, receive, responder, handler)

    async def _still_admitted(self, request: GatewayRequest, scope: Scope) -> GatewayRequest:
        """The request, now that its body is here. Raises what `admit_again` raises, and Refusal
        where its key may no longer do this."""
        held = request.key_context
        key_context = await admit_again(
            self._directory,
            request.headers,
            _key_query(request.route, scope),
            key_context=held,
            since=request.admitted_at,
        )
        if key_context is held:
            return request
        _require_scope(key_context.caller)
        _require_project(key_context.caller, request.options)
        return replace(request, key_context=key_context)

    async def _handle(
        self,
        request: GatewayRequest,
        body: bytes,
        scope: Scope,
        receive: Receive,
        responder: Responder,
        handler: Handler,
    ) -> None:
        if not await is_handed_on(scope, body, receive, responder.pass_on):
            parsed = parse(body)
            check_sizes(parsed, len(body))
            await handler(request, body, parsed, receive, responder)

    async def _count(
        self,
        request: GatewayRequest,
        body: bytes,
        parsed: dict[str, Any],
        receive: Receive,
        responder: Responder,
    ) -> None:
        await counting.answer(
            request,
            body,
            parsed,
            responder,
            listings=self._listings,
            client=self._client,
            keepers=self._keepers,
        )

    async def _show(
        self,
        request: GatewayRequest,
        body: bytes,
        parsed: dict[str, Any],
        receive: Receive,
        responder: Responder,
    ) -> None:
        await models.answer_show(
            request, body, parsed, responder, listings=self._listings, client=self._client
        )


def _require_scope(caller: Caller) -> None:
    """Refuse a key that may not use the gateway. Raises Refusal."""
    if not caller.may(_SCOPE):
        raise forbidden(f"The key {caller.name} lacks the scope {_SCOPE}.")


def _require_project(caller: Caller, options: RequestOptions) -> None:
    """Refuse a call that is meant for a project other than the key's. Raises Refusal."""
    if options.project is not None and options.project != caller.project.slug:
        raise forbidden(
            f"x-helmdash-project: the key {caller.name} belongs to the project "
            f"{caller.project.slug}. Use a key of the project that is meant."
        )


def _key_query(route: Route, scope: Scope) -> bytes:
    """The query, where a key may stand in it."""
    query: bytes = scope["query_string"]
    return query if route.client.kind is ProviderKind.GEMINI else b""


def _coding_of(headers: Mapping[bytes, bytes]) -> Coding | None:
    """How a body is packed; None: it is not. Raises BodyPacked for what is not read here."""
    if is_plain(headers):
        return None
    coding = coding_of(headers)
    if coding is None:
        raise BodyPacked(others=" or ".join(Coding))
    return coding


def _without_packing(scope: Scope) -> Scope:
    """The request as it would have come with a plain body."""
    packed = (b"content-encoding", b"content-length")
    headers = [(name, value) for name, value in scope["headers"] if name not in packed]
    return {**scope, "headers": headers}


def _before_the_body(refusal: Refusal, route: Route) -> list[Header]:
    """Whoever is turned away before its body was read is not kept sending it."""
    headers = [*_TURNED_AWAY]
    if refusal.error.status == 405:
        headers.append((b"allow", ", ".join(filter(None, (route.method, route.also))).encode()))
    return headers
