"""Core's values as tests need them: each with ordinary figures, changed by keyword.

Whatever a test does not name has a figure here, so that a new member is written down once.
Pure: no database (tests.factories makes stored things, tests.core.catalogs catalogs).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import Alias, BudgetSpec, EffectiveBudget, Tier
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import Level

# The fallback as it is shipped.
FALLBACK: Final = BudgetSpec(
    key="",
    input_tokens=16_000,
    output_tokens=1_500,
    max_catalog_bytes=10_000,
    tier=Tier.C,
    allows_llm_filter=True,
    is_hybrid_reasoning=False,
    wants_strict_json=False,
    supports_prefix_cache=False,
)


def make_spec(key: str = "", **over: Any) -> BudgetSpec:
    """A row of the budget table: the fallback's figures but for what is given."""
    return replace(FALLBACK, key=key, **over)


def make_table(*rows: BudgetSpec, aliases: Iterable[Alias] = ()) -> BudgetTable:
    """A table of these rows; the fallback's, unless one of them is a fallback."""
    has_fallback = any(not row.key for row in rows)
    return BudgetTable(rows if has_fallback else (FALLBACK, *rows), aliases)


def make_budget(**over: Any) -> EffectiveBudget:
    """What holds for a model that only the fallback governs; `key` makes the row a model's own."""
    row = make_spec(**over)
    return make_table(row).lookup(row.key or "some/model")


def make_health(**over: Any) -> Health:
    """A healthy call: 96,000 of 200,000 tokens."""
    given: dict[str, Any] = {
        "level": Level.HEALTHY,
        "reason": None,
        "prompt_tokens": 96_000,
        "limit_tokens": 200_000,
        "limit_source": LimitSource.CONTEXT_LENGTH,
        "optimal_max_tokens": 100_000,
        "critical_max_tokens": 180_000,
        "hard_util": 0.48,
        "optimal_util": 0.96,
    }
    return Health(**{**given, **over})
