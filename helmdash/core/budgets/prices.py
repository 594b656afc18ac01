"""What tokens cost, by the prices in a model's budget."""

from __future__ import annotations

from helmdash.core.budgets.budgets import BudgetFigures

_MTOK = 1_000_000


def cost_usd(
    budget: BudgetFigures, *, prompt: int, cached: int, written: int, completion: int
) -> float | None:
    """The price of some tokens in USD; None where the budget has none.

    cached, written: of the prompt's tokens those that came from a cache, and those that went into
    one; they cost as much as the others where the budget has no price of their own.
    """
    plain, answered = budget.input_cost_usd_per_mtok, budget.output_cost_usd_per_mtok
    if plain is None or answered is None:
        return None
    from_cache = budget.cached_input_cost_usd_per_mtok or plain
    to_cache = budget.cache_write_cost_usd_per_mtok
    return (
        (prompt - cached - written) * plain
        + cached * from_cache
        + written * (plain if to_cache is None else to_cache)
        + completion * answered
    ) / _MTOK


def has_prices(budget: BudgetFigures) -> bool:
    """Whether the budget says what a call costs: the prices of input and of output."""
    return budget.input_cost_usd_per_mtok is not None and (
        budget.output_cost_usd_per_mtok is not None
    )
