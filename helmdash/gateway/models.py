"""Lists of models, and what is known of one: each vendor's shape, one list behind them."""

from __future__ import annotations

from typing import Any

from helmdash import __version__
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.placing import place
from helmdash.gateway.request import GatewayRequest
from helmdash.gateway.responder import Responder
from helmdash.providers.ollama.http import post
from helmdash.providers.ollama.listing import write_ps, write_show, write_version
from helmdash.providers.shared.bodies import with_members
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.listings import Listings

_MOST_BYTES = 4 * 1024 * 1024


async def answer_list(request: GatewayRequest, responder: Responder, listings: Listings) -> None:
    """The models of every upstream as `provider/model`, or the one that is asked for.

    Raises Refusal (404) when no upstream serves that one.
    """
    client = request.route.client
    created = int(request.started_at.timestamp())
    if request.route.model is None:
        ids = await listings.all_ids(request.key_context.endpoints)
        models = [(each, _owner(each)) for each in ids]
        await responder.whole(200, client.write_models(models, created=created))
        return
    model = request.route.model
    found = await _find(request, model, listings)
    owner = found.endpoint.name if found.endpoint else _owner(model)
    await responder.whole(200, client.write_model(model, owner=owner, created=created))


async def answer_show(
    request: GatewayRequest,
    body: bytes,
    parsed: dict[str, Any],
    responder: Responder,
    *,
    listings: Listings,
    client: UpstreamClient,
) -> None:
    """What Ollama tells of a model: its own words, or what our budget knows of another's."""
    exchange = await _find(request, parsed.get("model") or parsed.get("name"), listings)
    assert exchange.budget is not None
    if exchange.endpoint is not None and exchange.endpoint.kind is ProviderKind.OLLAMA:
        named = with_members(body, parsed, {"model": exchange.upstream_model})
        http_request = post(exchange.endpoint, "show", named)
        try:
            fetched = await client.fetch(exchange.endpoint, http_request, limit_bytes=_MOST_BYTES)
            await responder.whole(fetched.status, fetched.body)
            return
        except UpstreamFailed:
            pass  # what we know ourselves is better than nothing
    shown = write_show(
        context_length=exchange.budget.limit_tokens,
        capabilities=("completion", "tools"),
        at=int(request.started_at.timestamp()),
    )
    await responder.whole(200, shown)


async def answer_running(responder: Responder) -> None:
    """Ollama's list of models in memory: none of ours is."""
    await responder.whole(200, write_ps())


async def answer_version(responder: Responder) -> None:
    """A version for clients that ask before they talk."""
    await responder.whole(200, write_version(__version__))


async def _find(request: GatewayRequest, model: object, listings: Listings) -> Exchange:
    exchange = request.begin(model, b"")
    await place(exchange, listings)
    return exchange


def _owner(model: str) -> str:
    return model.partition("/")[0]
