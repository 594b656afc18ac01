"""Lists of models, and what is known of one: each vendor's shape, one list behind them."""

from __future__ import annotations

from typing import Any

from helmdash import __version__, conf
from helmdash.core.budgets.budgets import EffectiveBudget, MatchRule
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.gateway.placing import place
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.request import GatewayRequest
from helmdash.gateway.responder import Responder
from helmdash.providers import openai
from helmdash.providers.ollama.http import post
from helmdash.providers.ollama.listing import write_ps, write_show, write_version
from helmdash.providers.protocols import ListedModel
from helmdash.providers.shared.bodies import with_members
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed
from helmdash.upstream.listings import Listings

_MOST_BYTES = 4 * 1024 * 1024


async def answer_list(request: GatewayRequest, responder: Responder, listings: Listings) -> None:
    """The models of every upstream as `provider/model`, or the one that is asked for.

    With the windows of their budgets, since that is where clients learn when to compact: one that
    is told none takes a default of its own. Raises Refusal (404) when no upstream serves the model
    that is asked for.
    """
    client = request.route.client
    created = int(request.started_at.timestamp())
    if request.route.model is not None:
        found = await _find(request, request.route.model, listings)
        model = _listed(found, request.route.model)
        await responder.whole(200, client.write_model(model, created=created))
        return
    rules = request.key_context.rules
    models = []
    for endpoint, served in await listings.all_served(request.key_context.endpoints):
        name = f"{endpoint.name}/{served}"
        budget = rules.lookup(
            name,
            key=rules.key_of(name, provider=endpoint.name),
            server_window=listings.window(endpoint, served),
        )
        models.append(_sized(name, endpoint.name, budget))
    body = client.write_models(models, created=created)
    if conf.env().codex_models and client.name == openai.CLIENT.name:
        body = openai.with_codex_models(body, models)
    await responder.whole(200, body)


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


def _listed(exchange: Exchange, name: str) -> ListedModel:
    assert exchange.budget is not None
    owner = exchange.endpoint.name if exchange.endpoint else name.partition("/")[0]
    return _sized(name, owner, exchange.budget)


def _sized(name: str, owner: str, budget: EffectiveBudget) -> ListedModel:
    """What rules all models that no row knows says nothing of this one."""
    is_known = budget.rule is not MatchRule.FALLBACK
    return ListedModel(
        name=name,
        owner=owner,
        window=budget.limit_tokens,
        output_tokens=budget.output_tokens if is_known else None,
        compacts_at=budget.critical_max_tokens,
    )
