"""Budgets as they leave."""

from __future__ import annotations

from helmdash.api.schemas import budgets as budget_shapes
from helmdash.core.budgets.budgets import BudgetSpec, Resolution
from helmdash.queries.budgets import BudgetRow, ContextBudgets
from helmdash.shapes.rendering import effective, figures


def budget(row: BudgetRow) -> budget_shapes.Budget:
    """One row as it is edited."""
    value: BudgetSpec = row.budget
    return {
        "id": row.id,
        **figures(value),
        "project": row.project,
        "prompt_variant": value.prompt_variant,
        "optimal_max_tokens": value.optimal_max_tokens,
        "critical_max_tokens": value.critical_max_tokens,
        "caution_cadence": value.caution_cadence,
        "updated_at": row.updated_at,
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
    """The body of `helmdeck://context-budgets`."""
    return {
        "fetched_at": value.fetched_at,
        "fallback": effective(value.fallback),
        "budgets": [effective(item) for item in value.budgets],
        "policy": value.policy,
    }
