"""The level of a recorded call: judged here when it is recorded, and here when it is judged anew
under other budgets."""

from __future__ import annotations

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import Health, assess, suspected_cut, without_limit
from helmdash.core.budgets.learned_windows import OUTSIDE, LimitSource, disproves
from helmdash.core.values import quick_value

# Many texts in one request: their sum says nothing of the window of each.
_SUMMED_PURPOSES = frozenset({"embedding", "embed", "rerank"})


@quick_value(frozen=True, slots=True)
class Judgement:
    """A call's health; is_proof: it was answered although far longer than its limit."""

    health: Health
    is_proof: bool


def judge_health(
    prompt_tokens: int | None,
    budget: EffectiveBudget,
    *,
    is_success: bool,
    purpose: str,
    is_cut: bool = False,
) -> Judgement:
    """Judge a call by its budget.

    prompt_tokens: as reported, None: not told. is_cut: its prompt was probably cut on the way, so
    that the count is of what was left.
    """
    health = assess(prompt_tokens, budget)
    limit = budget.limit_tokens
    is_proof = (
        prompt_tokens is not None
        and limit is not None
        and disproves(prompt_tokens, limit)
        and is_success
        and purpose not in _SUMMED_PURPOSES
    )
    is_of_each = purpose in _SUMMED_PURPOSES and budget.limit_source is LimitSource.PUBLISHED
    if is_of_each or (is_proof and not is_operators(budget)):
        # Nothing that was just shown to be wrong turns a call red, nor a published window of one
        # text a sum of many.
        health = without_limit(health, budget)
    return Judgement(suspected_cut(health) if is_cut else health, is_proof)


def is_operators(budget: EffectiveBudget) -> bool:
    """Whether the limit is an operator's number, which holds until an operator changes it."""
    return not budget.is_shipped and budget.limit_source not in OUTSIDE
