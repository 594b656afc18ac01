"""What a person should know about a budget row by itself and beside the others: a note, never an
error."""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.core.budgets.budget_rules import length_note, shadowed_keys
from helmdash.records.admin.budgets.tables import same_scope
from helmdash.records.models import Budget

# More keys than this in one sentence are not read.
_MOST_KEYS = 8


def notes_of(budget: Budget) -> tuple[str, ...]:
    """Sentences about its lengths, and about rows that take models from it, or lose models to it.
    One query at most."""
    lengths = length_note(budget.to_core())
    return (*([lengths] if lengths else []), *_shadow_notes(budget))


def _shadow_notes(budget: Budget) -> tuple[str, ...]:
    if not budget.key:
        return ()
    others = same_scope(Budget.objects.order_by("key"), budget)
    notes = _wins_over_it(budget, others), _it_wins_over(budget, others)
    return tuple(note for note in notes if note)


def _wins_over_it(budget: Budget, others: Sequence[str]) -> str | None:
    longer = shadowed_keys(budget.key, tuple(others))
    if not longer:
        return None
    return (
        f"Longer keys go before {budget.key}: models that start with {_list(longer)} "
        "are governed by those rows, not by this one."
    )


def _it_wins_over(budget: Budget, others: Sequence[str]) -> str | None:
    shorter = [key for key in others if budget.key in shadowed_keys(key, (budget.key,))]
    if not shorter:
        return None
    nearest = max(shorter, key=len)
    return (
        f"The key {budget.key} shadows {nearest}: without this row, its models would be governed "
        f"by {nearest}."
    )


def _list(keys: Sequence[str]) -> str:
    shown = ", ".join(keys[:_MOST_KEYS])
    return shown if len(keys) <= _MOST_KEYS else f"{shown} and {len(keys) - _MOST_KEYS} more"
