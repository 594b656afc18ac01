"""What plans and routes came to: how far a model's structured output can be trusted, and by which
of two ways of asking it fares better.

Catalog bytes are asked of `core.evidence.safe_input`, with bands of bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from helmdash.core.budgets.budgets import Tier
from helmdash.core.evidence.stratified import UNKNOWN_FALL, Cell, Fall, blocks_of, fall_between
from helmdash.core.text.wilson import wilson

PLANNING_VERSION: Final = "planning-1"

# One bad structured answer in twenty can be retried; one in seven needs smaller questions. An
# interval of a tier's width takes some sixty calls.
_LEAST_OF_A: Final = 0.95
_LEAST_OF_B: Final = 0.85
LEAST_STRUCTURED: Final = 60
# Of two ways: on each side, and how much better one has to be.
LEAST_OF_WAY: Final = 30
_LEAST_GAIN: Final = 0.10
_LEAST_Z: Final = 3.0
# The two ways, as bands of cells.
FIRST_WAY: Final = 0
SECOND_WAY: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFinding:
    """tier: the one that the whole interval lies in; None where it lies in two. share: of clean
    ones, with its 95 % interval."""

    tier: Tier | None
    calls: int
    share: float | None = None
    interval: tuple[float, float] | None = None
    missing: int = 0
    method: str = PLANNING_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class WayFinding:
    """better: FIRST_WAY or SECOND_WAY; None where neither is shown to be. fall: from the first to
    the second. missing: calls that the side with fewer lacks."""

    better: int | None
    calls: tuple[int, int]
    fall: Fall = UNKNOWN_FALL
    missing: int = 0
    method: str = PLANNING_VERSION


def find_tier(*, clean: int, calls: int) -> TierFinding:
    """The tier that structured calls show. calls: only those that got a reply, so that an outage
    says nothing of the model."""
    interval = wilson(clean, calls)
    if calls < LEAST_STRUCTURED or interval is None:
        return TierFinding(tier=None, calls=calls, missing=LEAST_STRUCTURED - calls)
    share = clean / calls
    low, high = interval
    tier = None
    if low >= _LEAST_OF_A:
        tier = Tier.A
    elif low >= _LEAST_OF_B and high < _LEAST_OF_A:
        tier = Tier.B
    elif high < _LEAST_OF_B:
        tier = Tier.C
    return TierFinding(tier=tier, calls=calls, share=share, interval=interval)


def find_better_way(cells: Iterable[Cell]) -> WayFinding:
    """Which of two ways of asking gives more clean answers, within blocks of like calls."""
    given = list(cells)
    first, second = (
        sum(c.calls for c in given if c.band == way) for way in (FIRST_WAY, SECOND_WAY)
    )
    missing = max(LEAST_OF_WAY - min(first, second), 0)
    if missing:
        return WayFinding(better=None, calls=(first, second), missing=missing)
    fall = fall_between(
        blocks_of(given),
        small=range(FIRST_WAY, FIRST_WAY + 1),
        large=range(SECOND_WAY, SECOND_WAY + 1),
    )
    better = None
    if fall.points is not None and abs(fall.points) >= _LEAST_GAIN and abs(fall.z) >= _LEAST_Z:
        better = FIRST_WAY if fall.points > 0 else SECOND_WAY
    return WayFinding(better=better, calls=(first, second), fall=fall)
