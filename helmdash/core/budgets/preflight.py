"""Whether a prompt of now would fit another model, before that model is needed."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, assert_never

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import assess
from helmdash.core.budgets.levels import Level


class Room(StrEnum):
    """How a prompt would stand with another model."""

    FITS = "fits"
    CAUTION = "caution"
    CRITICAL = "critical"
    TOO_LONG = "too_long"  # above its limit, or above its budget's input ceiling
    UNKNOWN = "unknown"  # no prompt was reported, or no limit of the model is known


# The worst first.
BY_NEED: Final = (Room.TOO_LONG, Room.CRITICAL, Room.CAUTION, Room.UNKNOWN, Room.FITS)


def room_for(prompt_tokens: int | None, budget: EffectiveBudget) -> Room:
    """How a prompt stands under the budget of another model. The count is that of the model that it
    was sent to: other tokenizers count some percent more or less."""
    health = assess(prompt_tokens, budget)
    if health.prompt_tokens is None:
        return Room.UNKNOWN
    if health.prompt_tokens > budget.most_prompt_tokens:
        return Room.TOO_LONG
    match health.level:
        case Level.HEALTHY:
            return Room.FITS
        case Level.CAUTION:
            return Room.CAUTION
        case Level.CRITICAL:
            return Room.CRITICAL
        case Level.UNKNOWN:
            return Room.UNKNOWN
        case _:
            assert_never(health.level)
