"""Budgets as they leave."""

from __future__ import annotations

from helmdash.api.schemas import budgets as budget_shapes
from helmdash.core.budgets import Budget, BudgetFigures, EffectiveBudget, Resolution
from helmdash.queries.budgets import BudgetRow, ContextBudgets


def budget(row: BudgetRow) -> budget_shapes.Budget:
    """One row as it is edited."""
    value: Budget = row.budget
    return {
        "id": row.id,
        **_figures(value),
        "project": row.project,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "updated_at": row.updated_at,
    }


def effective(value: EffectiveBudget) -> budget_shapes.Effective:
    """The figures that hold for a model."""
    return {
        "model": value.model,
        **_figures(value),
        "rule": value.rule,
        "budget_id": value.budget_id,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "limit_tokens": value.limit_tokens,
        "limit_source": value.limit_source,
    }


def resolution(value: Resolution) -> budget_shapes.Resolved:
    """A lookup, explained."""
    return {
        "model": value.model,
        "budget": effective(value.budget),
        "matched": {
            "key": value.matched_key,
            "rule": value.rule,
            "budget_id": value.budget_id,
        },
        "candidates": [
            {"key": item.key, "rule": item.rule, "won": item.won, "why": item.why}
            for item in value.candidates
        ],
    }


def context_budgets(value: ContextBudgets) -> budget_shapes.ContextBudgets:
    """The seed's projection."""
    return {
        "fetched_at": value.fetched_at,
        "fallback": effective(value.fallback),
        "budgets": [effective(item) for item in value.budgets],
        "policy": value.policy,
    }


def _figures(value: BudgetFigures) -> budget_shapes.Figures:
    return {
        "key": value.key,
        "input_tokens": value.input_tokens,
        "output_tokens": value.output_tokens,
        "max_catalog_bytes": value.max_catalog_bytes,
        "tier": value.tier,
        "allows_llm_filter": value.allows_llm_filter,
        "filter_model": value.filter_model,
        "fallback_model": value.fallback_model,
        "is_hybrid_reasoning": value.is_hybrid_reasoning,
        "wants_strict_json": value.wants_strict_json,
        "supports_prefix_cache": value.supports_prefix_cache,
        "cached_input_cost_usd_per_mtok": value.cached_input_cost_usd_per_mtok,
        "input_cost_usd_per_mtok": value.input_cost_usd_per_mtok,
        "output_cost_usd_per_mtok": value.output_cost_usd_per_mtok,
        "context_length": value.context_length,
        "input_length": value.input_length,
        "chars_per_token": value.chars_per_token,
        "safety_multiplier": value.safety_multiplier,
        "reserve_tokens": value.reserve_tokens,
        "evidence": value.evidence,
        "enabled": value.enabled,
    }
