"""Prompts against the lines of a budget: how many lie at which level, and where they crowd.

Prompts are counted by bucket (core.rollups.buckets), so a figure is within 0.8 % of what was
measured; a prompt that lies as near to a line may be told on its other side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.levels import Level
from helmdash.core.rollups.buckets import bounds

# Bars of a drawing as narrow as a column of a table: 4 px each.
BARS: Final = 36
Buckets = Mapping[int, int]
"""How many prompts lie in each bucket of tokens."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The prompts of one part of the scale, and the level of its middle."""

    prompts: int
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Prompts on a scale from 0 to `scale` tokens, in BARS equal parts; none lies beyond it."""

    scale: int
    bars: tuple[Bar, ...]
    prompts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """So many prompts would show another level."""

    before: Level
    after: Level
    prompts: int


def spread_of(prompts: Buckets, budget: EffectiveBudget) -> Spread:
    """Where prompts lie on a scale that ends at the limit, or at the largest prompt beyond it."""
    highest = max((bounds(bucket)[1] for bucket in prompts), default=0)
    lines = (budget.limit_tokens, budget.critical_max_tokens, budget.optimal_max_tokens)
    scale = max(highest, next(filter(None, lines), 0), 1)
    counts = [0] * BARS
    for bucket, count in prompts.items():
        counts[min(_middle(bucket) * BARS // scale, BARS - 1)] += count
    return Spread(
        scale=scale,
        bars=tuple(
            Bar(count, assess((2 * place + 1) * scale // (2 * BARS), budget).level)
            for place, count in enumerate(counts)
        ),
        prompts=sum(prompts.values()),
    )


def levels_of(prompts: Buckets, budget: EffectiveBudget) -> dict[Level, int]:
    """How many of them a budget would call what."""
    found: Counter[Level] = Counter()
    for bucket, count in prompts.items():
        found[assess(_middle(bucket), budget).level] += count
    return dict(found)


def shifts_of(
    prompts: Buckets, before: EffectiveBudget, after: EffectiveBudget
) -> dict[tuple[Level, Level], int]:
    """How many prompts would show another level, by the level they have and the one they would."""
    found: Counter[tuple[Level, Level]] = Counter()
    for bucket, count in prompts.items():
        tokens = _middle(bucket)
        levels = assess(tokens, before).level, assess(tokens, after).level
        if levels[0] is not levels[1]:
            found[levels] += count
    return dict(found)


def _middle(bucket: int) -> int:
    return sum(bounds(bucket)) // 2
