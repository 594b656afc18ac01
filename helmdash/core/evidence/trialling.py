"""What a trial of a suggested budget shows, and when it is to be stopped.

Conversations were put into two arms by chance, so these differ by the budget alone. The calls of
one conversation go well or badly together: rates are of calls, their errors of conversations (the
ratio estimator of survey statistics: Cochran, Sampling Techniques, 1977, chapter 6).

A job looks again and again, and with a test for one look a trial without any difference would be
stopped sooner or later. So harm is judged by the mixture likelihood ratio of Robbins (1970): its
chance of ever passing 1/a without a difference is at most a, however often it is looked at (of
normal errors; docs/evidence.md has what it is of simulated conversations).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from helmdash.core.text.wilson import wilson

METHOD: Final = "trial-1"
# How often a trial without a difference may be stopped as harmful, over all looks together.
FALSE_STOPS: Final = 0.01
# The harm that the test is quickest at (of one): a fall that people notice.
_TYPICAL_HARM: Final = 0.1
# Of each arm: errors of fewer conversations are not to be trusted, heavy tails or not.
LEAST_CONVERSATIONS: Final = 20
# A smaller fall is nothing to stop for, however sure it is.
_LEAST_HARM: Final = 0.02


class TrialState(StrEnum):
    """running; finished: its end was reached; stopped: it was clearly worse; decided: somebody
    accepted or dismissed the suggestion before either, or edited its figure."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """The calls of one arm. Sums over its conversations: of the squared numbers of calls and of
    clean calls, and of their products."""

    conversations: int = 0
    calls: int = 0
    clean: int = 0
    calls_squared: int = 0
    clean_squared: int = 0
    product: int = 0

    @property
    def rate(self) -> float | None:
        """The share of clean calls; None without calls."""
        return self.clean / self.calls if self.calls else None

    @property
    def variance(self) -> float:
        """Of the rate, by how conversations differ. As if there were one more conversation without
        any clean call and one more with clean ones alone: where all went well so far, the next need
        not."""
        if not self.calls:
            return math.inf
        size = self.calls / self.conversations
        calls, clean = self.calls + 2 * size, self.clean + size
        rate = clean / calls
        square = size * size
        spread = (
            self.clean_squared
            + square
            - 2 * rate * (self.product + square)
            + rate * rate * (self.calls_squared + 2 * square)
        )
        units = self.conversations + 2
        return units / (units - 1) * spread / (calls * calls)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the rate, by Wilson's formula for as many independent calls as its
        variance is worth; None without calls."""
        if not self.calls:
            return None
        size = self.calls / self.conversations
        rate = (self.clean + size) / (self.calls + 2 * size)
        worth = min(rate * (1 - rate) / self.variance, self.calls)
        return wilson(self.clean / self.calls * worth, worth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The suggested budget's rate of clean calls less today's, and its 95 % interval (of one)."""

    points: float
    low: float
    high: float


def difference(today: ArmFigures, suggested: ArmFigures) -> Difference | None:
    """How much better the suggested budget does. None: an arm has no calls."""
    if today.rate is None or suggested.rate is None:
        return None
    points = suggested.rate - today.rate
    reach = _Z95 * math.sqrt(today.variance + suggested.variance)
    return Difference(points=points, low=max(points - reach, -1.0), high=min(points + reach, 1.0))


def is_clearly_worse(today: ArmFigures, suggested: ArmFigures) -> bool:
    """Whether a trial is to be stopped: may be asked as often as one likes."""
    if min(today.conversations, suggested.conversations) < LEAST_CONVERSATIONS:
        return False
    found = difference(today, suggested)
    if found is None or -found.points < _LEAST_HARM:
        return False
    return _log_odds(-found.points, today.variance + suggested.variance) >= -math.log(FALSE_STOPS)


def _log_odds(harm: float, variance: float) -> float:
    """The logarithm of how much likelier what was seen is with harms of some size (normal, and
    positive) than with none."""
    told = _TYPICAL_HARM**2 / variance
    part = told / (1 + told)
    z = harm / math.sqrt(variance)
    above = math.erfc(-z * math.sqrt(part) / math.sqrt(2))  # twice the normal distribution
    return math.log(above) - 0.5 * math.log1p(told) + 0.5 * z * z * part


_Z95: Final = 1.959963984540054
