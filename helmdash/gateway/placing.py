"""Where a call goes: its upstream, and the budget that governs it."""

from __future__ import annotations

from helmdash.core.calls.completion import UnknownModel
from helmdash.gateway.refusals import not_found
from helmdash.gateway.requests.exchange import Exchange
from helmdash.upstream.listings import Listings


async def place(exchange: Exchange, listings: Listings) -> None:
    """Find the upstream and the budget of a call. Raises Refusal (404) when none serves it."""
    key_context = exchange.key_context
    default = key_context.caller.project.default_upstream
    try:
        route = await listings.choose(exchange.model, key_context.endpoints, default=default)
    except UnknownModel as error:
        raise not_found(str(error), code="model_not_found", records=True) from None
    exchange.endpoint = route.endpoint
    exchange.upstream_model = route.model
    exchange.is_native = listings.formats.is_spoken(route.endpoint, exchange.route.client)
    exchange.budget_model = key_context.rules.name_of(
        exchange.model, served=f"{route.endpoint.name}/{route.model}"
    )
    exchange.look_up_budget()
