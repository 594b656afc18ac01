"""Completer: asks a model for a whole reply, for an operation of our own, and tells how it went.

It goes where the gateway would send the same model, and what it hands back is what the gateway
records of a call (gateway/requests/exchange.py), so that both are judged alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter_ns

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import MatchRule
from helmdash.core.budgets.windows import wanted_window
from helmdash.core.calls.beside import Beside, ToolUse
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.core.calls.completion import Completion
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.routes import CallRoute
from helmdash.core.text.tokens import utf8_bytes
from helmdash.core.upstreams.endpoints import LEAST_SECRET_CHARS, Endpoint, ProviderKind
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.registry import SPOKEN, ModelRoute
from helmdash.providers.wire import ChatRequest, JsonMode, Message, Reply, Role, Text, WireError
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import FailureKind, UpstreamFailed
from helmdash.upstream.listings import Listings
from helmdash.upstream.opened import Opened
from helmdash.upstream.sharing import Shared, on_loop, own_connections

_NS_PER_MS = 1_000_000
# A plan has kilobytes, and the longest thoughts beside one (128,000 tokens) half a megabyte.
_MOST_REPLY_BYTES = 8 * 1024 * 1024
# An error page beyond this says nothing more.
_MOST_ERROR_BYTES = 1024 * 1024

Clock = Callable[[], datetime]


class Completer:
    """A `Complete` of core.calls.completion, for the upstreams of one project."""

    def __init__(
        self,
        client: UpstreamClient,
        listings: Listings,
        endpoints: Sequence[Endpoint],
        *,
        default: str,
        clock: Clock,
        rules: BudgetTable | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """`default` names the project's default upstream, "" for none.

        `rules` tell by which name budgets know a model, as for the gateway's calls; without them
        a bare id is told with its provider's name. `loop` is the client's, if it may be another
        than the caller's.
        """
        self._client = client
        self._listings = listings
        self._endpoints = tuple(endpoints)
        self._default = default
        self._clock = clock
        self._rules = rules
        self._loop = loop

    async def __call__(self, completion: Completion) -> Capture:
        """Ask, wait for the whole reply, and tell what came of it.

        Never raises for what an upstream does. Raises UnknownModel when none serves the model.
        Cancelling it closes the connection.
        """
        if self._loop is None:
            return await self._complete(completion)
        # A synchronous view may run on a loop of its own; connections stay on theirs.
        return await on_loop(self._loop, self._complete(completion))

    async def _complete(self, completion: Completion) -> Capture:
        started_at, started_ns = self._clock(), perf_counter_ns()
        route = await self._listings.choose(
            completion.model, self._endpoints, default=self._default
        )
        budget_model = self._budget_model(completion.model, route)
        window = self._window(budget_model or completion.model, route)
        request = replace(_request_of(completion), num_ctx=window)
        outcome = await _ask(self._client, route, request)
        return replace(
            _capture(completion, route, outcome),
            budget_model=budget_model,
            window=window,
            started_at=started_at,
            latency_ms=(perf_counter_ns() - started_ns) // _NS_PER_MS,
        )

    def _budget_model(self, model: str, route: ModelRoute) -> str | None:
        """The name that budgets know the model by, where that is not the one asked for."""
        qualified = f"{route.endpoint.name}/{route.model}"
        if self._rules is None:
            return None if "/" in model else qualified
        return self._rules.name_of(model, served=qualified)

    def _window(self, model: str, route: ModelRoute) -> int | None:
        """The window an Ollama server is to use, as the gateway tells it; None for any other."""
        if self._rules is None or route.endpoint.kind is not ProviderKind.OLLAMA:
            return None
        budget = self._rules.lookup(model)
        return None if budget.rule is MatchRule.FALLBACK else wanted_window(budget)


@asynccontextmanager
async def completer(
    endpoints: Sequence[Endpoint],
    *,
    default: str,
    clock: Clock,
    shared: Shared | None = None,
    rules: BudgetTable | None = None,
) -> AsyncIterator[Completer]:
    """A completer over the server's own connections; shared None: over some that are closed
    afterwards. rules None: without budgets, so that no window is sent."""
    if shared is not None:
        yield Completer(
            shared.client,
            shared.listings,
            endpoints,
            default=default,
            clock=clock,
            rules=rules,
            loop=shared.loop,
        )
        return
    async with own_connections() as (client, listings):
        yield Completer(client, listings, endpoints, default=default, clock=clock, rules=rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of one request; `reply` is None where no reply came."""

    sent_bytes: int | None = None
    http_status: int | None = None
    reply: Reply | None = None
    error: WireError | None = None
    error_is_own: bool = False
    attempts: tuple[Mapping[str, object], ...] = ()


def _request_of(completion: Completion) -> ChatRequest:
    """Nothing is said of the temperature: some models refuse it, and each has its own default."""
    system = Text(text=_sayable(completion.system), cache=completion.caches_system or None)
    return ChatRequest(
        model=completion.model,
        messages=(
            *([Message(role=Role.SYSTEM, parts=(system,))] if completion.system else ()),
            Message(role=Role.USER, parts=(Text(text=_sayable(completion.user)),)),
        ),
        json_mode=JsonMode() if completion.json_mode else None,
        max_tokens=completion.max_tokens,
    )


def _sayable(text: str) -> str:
    """The text with a question mark for each half of a character, which no JSON can say."""
    return text.encode("utf-8", "replace").decode()


async def _ask(client: UpstreamClient, route: ModelRoute, request: ChatRequest) -> _Outcome:
    """Send a request and read all of its answer."""
    endpoint = route.endpoint
    upstream = SPOKEN[endpoint.own_format]
    try:
        written = upstream.write_request(request, endpoint=endpoint, model=route.model)
    except CannotTranslate as error:
        refused = WireError(message=str(error), code="invalid_request_error")
        return _Outcome(error=refused, error_is_own=True)
    sent = _Outcome(sent_bytes=len(written.body or b""))
    try:
        opened = await client.open(endpoint, written)
    except UpstreamFailed as failure:
        return _failed(sent, failure)
    heard = replace(sent, http_status=opened.status, attempts=opened.attempts)
    try:
        if opened.status >= 400:
            refusal = _without_key(await _error_body(opened), endpoint)
            return replace(heard, error=upstream.read_error(opened.status, refusal))
        data = _without_key(await opened.read(_MOST_REPLY_BYTES), endpoint)
    except UpstreamFailed as failure:
        return _failed(heard, failure)
    finally:
        await opened.close()
    # A 200 with nothing in it is no error, but has a cause of its own.
    reply = upstream.read_reply(data, request=request) if data.strip() else Reply()
    return replace(heard, reply=reply, error=reply.error)


async def _error_body(opened: Opened) -> bytes:
    try:
        return await opened.read(_MOST_ERROR_BYTES)
    except UpstreamFailed:
        return b""  # the status alone says enough


def _failed(so_far: _Outcome, failure: UpstreamFailed) -> _Outcome:
    return replace(
        so_far,
        http_status=so_far.http_status or failure.http_status,
        error=WireError(message=failure.message, code=failure.code, type="upstream_error"),
        error_is_own=failure.kind is not FailureKind.REDIRECTED,
        attempts=failure.attempts,
    )


def _without_key(data: bytes, endpoint: Endpoint) -> bytes:
    """The bytes without the provider's key, which some upstreams repeat in what they say."""
    key = (endpoint.api_key or "").encode()
    if len(key) < LEAST_SECRET_CHARS or key not in data:
        return data
    return data.replace(key, b"[key]")


def _capture(completion: Completion, route: ModelRoute, outcome: _Outcome) -> Capture:
    """What the gateway would tell of the same call, but for its times and its budget."""
    error, reply = outcome.error, outcome.reply
    said = reply or Reply()
    has_reply = reply is not None
    return Capture(
        id=completion.call_id,
        model=completion.model,
        provider=route.endpoint.name,
        upstream_model=said.model or route.model,
        response_format="json_object" if completion.json_mode else None,
        attempt=max(len(outcome.attempts), 1),
        # A single good attempt has nothing to tell.
        attempts=outcome.attempts if len(outcome.attempts) > 1 else (),
        usage=said.usage,
        finish_reason="refusal" if said.refusal else said.finish_reason,
        raw_content_len=utf8_bytes(said.text) if has_reply else None,
        content=(said.text or said.refusal or "") if has_reply else None,
        reasoning_len=utf8_bytes(said.reasoning) if has_reply else None,
        tool_calls=len(said.tool_calls) if has_reply else None,
        status="error" if error is not None else "success",
        http_status=outcome.http_status,
        error_code=(error.code or error.type) if error else None,
        error_message=error.message if error else None,
        error_is_own=error is not None and outcome.error_is_own,
        sent=SentSizes(bytes=outcome.sent_bytes, messages=len(_messages(completion))),
        messages=_messages(completion),
        composition=Composition(
            system=utf8_bytes(completion.system or ""),
            tools=0,
            user=utf8_bytes(completion.user),
            assistant=0,
            tool_results=0,
            images=0,
            other=0,
        ),
        routes=(CallRoute.PLANNER,),
        beside=beside_of(said),
    )


def beside_of(reply: Reply) -> Beside | None:
    """What may hold an answer that is not in the text: calls of tools, and thoughts; None:
    neither."""
    if not (reply.tool_calls or reply.reasoning):
        return None
    calls = tuple(ToolUse(call.name, call.arguments) for call in reply.tool_calls)
    return Beside(calls=calls, reasoning=reply.reasoning)


def _messages(completion: Completion) -> tuple[Mapping[str, object], ...]:
    """For projects that keep texts; the recorder leaves them out for all others."""
    system = {"role": "system", "content": completion.system}
    user = {"role": "user", "content": completion.user}
    return (system, user) if completion.system else (user,)
