"""Counting tokens: the upstream's own count where it has one, else our estimate.

Not a call: no model answers, so nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway import budgeting
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.message_digest import images_of
from helmdash.gateway.placing import place
from helmdash.gateway.request import GatewayRequest, checked_model
from helmdash.gateway.responder import Responder, passed_headers
from helmdash.providers import anthropic, gemini
from helmdash.providers.protocols import BadRequest, HttpRequest
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.listings import Listings

_MOST_BYTES = 1024 * 1024
# Says that a count is ours: exact bytes, estimated tokens.
ESTIMATED = (b"x-helmdash-estimated", b"1")


async def answer(
    request: GatewayRequest,
    body: bytes,
    parsed: dict[str, Any],
    responder: Responder,
    *,
    listings: Listings,
    client: UpstreamClient,
) -> None:
    """Answer a request for a count. Raises Refusal (404) when no upstream serves the model."""
    exchange = request.begin(checked_model(request.route.model or parsed.get("model")), body)
    await place(exchange, listings)
    if await _asked_upstream(exchange, body, parsed, responder, client):
        return
    write = _WRITERS[request.route.shape.kind]
    await responder.whole(200, write(_estimate(exchange, parsed, responder)), [ESTIMATED])


async def _asked_upstream(
    exchange: Exchange,
    body: bytes,
    parsed: dict[str, Any],
    responder: Responder,
    client: UpstreamClient,
) -> bool:
    """Whether the upstream itself has answered, in the client's own format."""
    endpoint = exchange.endpoint
    assert endpoint is not None
    if endpoint.kind is not exchange.route.shape.kind:
        return False
    request = _request(exchange, body, parsed)
    try:
        opened = await client.open(endpoint, request)
    except UpstreamFailed:
        return False
    try:
        if opened.status != 200:
            return False
        data = await opened.read(_MOST_BYTES)
        await responder.whole(200, data, passed_headers(opened.headers))
    except UpstreamFailed:
        return False
    finally:
        await opened.close()
    return True


def _request(exchange: Exchange, body: bytes, parsed: dict[str, Any]) -> HttpRequest:
    assert exchange.endpoint is not None
    model = exchange.upstream_model or exchange.model
    if exchange.endpoint.kind is ProviderKind.GEMINI:
        return gemini.count_request(body, endpoint=exchange.endpoint, model=model)
    return anthropic.count_request(body, parsed, endpoint=exchange.endpoint, model=model)


def _estimate(exchange: Exchange, parsed: dict[str, Any], responder: Responder) -> int:
    """The estimate of the whole request, by its model's budget."""
    assert exchange.budget is not None
    try:
        # A request to count carries no limit for the answer, which a message has to.
        request = responder.client.read_request(
            {"max_tokens": 1, **parsed}, model=exchange.model, stream=False
        )
        exchange.images, exchange.image_bytes = images_of(request)
    except BadRequest:
        pass  # its bytes can be counted all the same
    return budgeting.estimate(
        text_bytes=exchange.text_bytes, images=exchange.images, budget=exchange.budget
    ).tokens


_WRITERS: dict[ProviderKind, Callable[[int], bytes]] = {
    ProviderKind.ANTHROPIC: anthropic.write_count,
    ProviderKind.GEMINI: gemini.write_count,
}
