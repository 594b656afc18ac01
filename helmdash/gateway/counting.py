"""Counting tokens: the upstream's own count where it has one, else our estimate.

Not a call: no model answers, so nothing is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helmdash.gateway import budgeting
from helmdash.gateway.kept_ids import check_kept_ids
from helmdash.gateway.placing import place
from helmdash.gateway.prompt_weight import weigh
from helmdash.gateway.refusals import bad_request
from helmdash.gateway.reply_keepers import ReplyKeepers
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.request import GatewayRequest
from helmdash.gateway.responder import Responder, passed_headers
from helmdash.providers.errors import BadRequest
from helmdash.providers.protocols import TokenCounting
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.listings import Listings

_MOST_BYTES = 1024 * 1024
_A_FRAGMENT = "The upstream did not count, and the whole input is not here to be estimated."
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
    keepers: ReplyKeepers,
) -> None:
    """Answer a request for a count. Raises Refusal: 404 when no upstream serves the model,
    400 for what another project may have made."""
    counting = request.route.client.counting
    assert counting is not None  # no path of the others leads here
    exchange = request.begin(request.route.model or parsed.get("model"), body)
    await place(exchange, listings)
    await check_kept_ids(exchange, parsed, keepers)
    if await _asked_upstream(counting, exchange, body, parsed, responder, client):
        return
    counted = counting.write_count(_estimate(exchange, parsed, responder))
    await responder.whole(200, counted, [ESTIMATED])


async def _asked_upstream(
    counting: TokenCounting,
    exchange: Exchange,
    body: bytes,
    parsed: dict[str, Any],
    responder: Responder,
    client: UpstreamClient,
) -> bool:
    """Whether the upstream itself has answered, in the client's own format."""
    endpoint = exchange.endpoint
    assert endpoint is not None
    if not exchange.is_native:
        return False
    model = exchange.upstream_model or exchange.model
    request = counting.count_request(body, parsed, endpoint=endpoint, model=model)
    try:
        fetched = await client.fetch(endpoint, request, limit_bytes=_MOST_BYTES)
    except UpstreamFailed:
        return False
    if fetched.status != 200:
        return False
    await responder.whole(200, fetched.body, passed_headers(fetched.headers))
    return True


def _estimate(exchange: Exchange, parsed: dict[str, Any], responder: Responder) -> int:
    """The estimate of the whole request, by its model's budget."""
    assert exchange.budget is not None
    try:
        # A request to count carries no limit for the answer, which a message has to.
        request = responder.client.read_request(
            {"max_tokens": 1, **parsed}, model=exchange.model, stream=False
        )
        if request.is_fragment:
            raise bad_request(request.untranslatable or _A_FRAGMENT)
        images, composition = weigh(request)
        outgoing = replace(exchange.outgoing, images=images, composition=composition)
    except BadRequest:
        outgoing = exchange.outgoing  # its bytes can be counted all the same
    return budgeting.estimate(outgoing, exchange.budget).tokens
