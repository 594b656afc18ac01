"""Where a call goes: its upstream, and the budget that governs it."""

from __future__ import annotations

from helmdash.core.budgets.budgets import MatchRule
from helmdash.core.budgets.model_names import split_window
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.refusals import not_found
from helmdash.upstream.listings import Listings, unserved


async def place(exchange: Exchange, listings: Listings) -> None:
    """Find the upstream and the budget of a call. Raises Refusal (404) when none serves it."""
    key_context = exchange.key_context
    route = await listings.choose(
        split_window(exchange.model).model,
        key_context.endpoints,
        default=key_context.caller.project.default_upstream,
    )
    exchange.budget = key_context.rules.lookup(exchange.model)
    if route is None:
        raise not_found(unserved(exchange.model), code="model_not_found", records=True)
    exchange.endpoint = route.endpoint
    exchange.upstream_model = route.model
    if exchange.budget.rule is MatchRule.FALLBACK:
        # No row knows the id as the client writes it: ask by the name it has here.
        qualified = f"{route.endpoint.name}/{route.model}"
        found = key_context.rules.lookup(qualified)
        if found.rule is not MatchRule.FALLBACK:
            exchange.budget, exchange.budget_model = found, qualified
    exchange.look_up_budget()
