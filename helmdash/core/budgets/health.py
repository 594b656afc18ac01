"""Health: how full a call's context is, from the reported prompt tokens and the budget's lines.

Source: "Context Health Monitor" (docs/sources.md). Nothing is estimated here: without a reported
count or a known limit the level is unknown, and says why.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import BY_SEVERITY, Level, line_of
from helmdash.core.budgets.lines import LineSource, lines_of
from helmdash.core.values import quick_value

# Stored with every call. A change of a line, or of what makes a level unknown, is a new version.
# 1, never stored: a caution line of 100,000 for small windows, too. 2: only rows told windows.
HEALTH_VERSION = "levels-3"


class HealthReason(StrEnum):
    """Why a level is unknown."""

    USAGE_UNAVAILABLE = "usage_unavailable"
    MODEL_LIMIT_UNAVAILABLE = "model_limit_unavailable"
    SUSPECTED_CUT = "suspected_cut"
    # Of a conversation that has side calls only (core.calls.lanes).
    NO_MAIN_CALL = "no_main_call"


@quick_value(frozen=True, slots=True, kw_only=True)
class Health:
    """The level of a call with the figures it was judged by.

    Tokens; the ratios are not clamped at 1. None: not known; `reason` says why where the level is
    unknown, else it is None.
    """

    level: Level
    reason: HealthReason | None
    prompt_tokens: int | None
    limit_tokens: int | None
    limit_source: LimitSource | None
    optimal_max_tokens: int
    critical_max_tokens: int | None
    hard_util: float | None
    optimal_util: float | None


def assess(prompt_tokens: int | None, budget: EffectiveBudget) -> Health:
    """Judge one call by strict lines: exactly on a line still counts as the lower level.

    `prompt_tokens` is the normalised total, cached tokens included; None: not reported. What is
    known is kept even where the level is unknown, so that a page can show it.
    """
    prompt = prompt_tokens if prompt_tokens and prompt_tokens > 0 else None
    reason = _why_unknown(prompt, budget)
    return Health(
        level=Level.UNKNOWN if prompt is None or reason else _level(prompt, budget),
        reason=reason,
        prompt_tokens=prompt,
        limit_tokens=budget.limit_tokens,
        limit_source=budget.limit_source,
        optimal_max_tokens=budget.optimal_max_tokens,
        critical_max_tokens=budget.critical_max_tokens,
        hard_util=_ratio(prompt, budget.limit_tokens),
        optimal_util=_ratio(prompt, budget.optimal_max_tokens),
    )


def level_for(prompt_tokens: int | None, budget: EffectiveBudget) -> Level:
    """The level alone that `assess` would give."""
    prompt = prompt_tokens if prompt_tokens and prompt_tokens > 0 else None
    if prompt is None or _why_unknown(prompt, budget):
        return Level.UNKNOWN
    return _level(prompt, budget)


def suspected_cut(health: Health) -> Health:
    """The same figures, but no level: the count is probably of what a provider left."""
    return replace(health, level=Level.UNKNOWN, reason=HealthReason.SUSPECTED_CUT)


def without_limit(health: Health, budget: EffectiveBudget) -> Health:
    """The same count, judged by no limit: the one there was has just been shown to be wrong, and
    with it the lines that follow from it."""
    own = budget.optimal_source is LineSource.BUDGET
    lines = lines_of(budget.optimal_max_tokens if own else None, None, limit=None)
    return replace(
        health,
        optimal_max_tokens=lines.optimal_max_tokens,
        optimal_util=_ratio(health.prompt_tokens, lines.optimal_max_tokens),
        level=Level.UNKNOWN,
        reason=HealthReason.MODEL_LIMIT_UNAVAILABLE,
        limit_tokens=None,
        limit_source=None,
        critical_max_tokens=None,
        hard_util=None,
    )


def _why_unknown(prompt: int | None, budget: EffectiveBudget) -> HealthReason | None:
    if prompt is None:
        return HealthReason.USAGE_UNAVAILABLE
    if budget.limit_tokens is None:
        return HealthReason.MODEL_LIMIT_UNAVAILABLE
    return None


def _level(prompt: int, budget: EffectiveBudget) -> Level:
    for level, line in _lines_of(budget.optimal_max_tokens, budget.critical_max_tokens):
        if prompt > line:
            return level
    return Level.UNKNOWN


class _Lines(NamedTuple):
    optimal_max_tokens: int | None
    critical_max_tokens: int | None


# A few hundred budgets judge all calls.
@lru_cache(maxsize=1024)
def _lines_of(optimal: int | None, critical: int | None) -> tuple[tuple[Level, int], ...]:
    """The levels that a count leads to, with their lines. The most severe is asked first: the
    lines of a budget may be the wrong way round."""
    lines = _Lines(optimal, critical)
    told = ((level, line_of(level, lines)) for level in BY_SEVERITY)
    return tuple((level, line) for level, line in told if line is not None)


def _ratio(part: int | None, whole: int | None) -> float | None:
    if part is None or not whole:
        return None
    return part / whole
