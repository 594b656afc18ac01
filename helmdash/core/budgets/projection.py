"""How soon a prompt passes its next line, by how fast it grew lately.

Rule: of the newest prompts since the last fall, the median growth by generation; a single large
result of a tool moves it little. Nothing is said by fewer than three prompts, of one that does not
grow, above the last line, or where no window is known: calls have no level then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.judged import is_operators
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.levels import HELD, HasLines, Level, line_of

# So many prompts tell the recent slope; more would tell of what the agent did before.
NEWEST_PROMPTS: Final = 8
_LEAST_PROMPTS: Final = 3
# Nobody waits so long; prompts that are said to be years apart would come to more than a length of
# time can hold.
_LONGEST: Final = timedelta(days=36_500)


class Prompt(NamedTuple):
    """One generation whose prompt was told, in tokens."""

    generation: int
    at: datetime
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The next line, and how far it is: generations until a prompt is above it (1: the next one),
    and about how long these take at the pace of late (at most a hundred years)."""

    level: Level
    line: int
    generations: int
    time: timedelta


def project(
    prompts: Sequence[Prompt], lines: HasLines, *, to: Level | None = None
) -> Projection | None:
    """The next line of prompts of one round, oldest first; None: nothing can be said.

    to: the line of this level, whichever others come before it.
    """
    recent = _since_fall(prompts[-NEWEST_PROMPTS:])
    if len(recent) < _LEAST_PROMPTS or lines.critical_max_tokens is None:
        return None
    newest = recent[-1]
    passed = ((line_of(level, lines), level) for level in HELD)
    ahead = [
        (line, level)
        for line, level in passed
        if line is not None and line >= newest.tokens and to in (None, level)
    ]
    growth = median(
        (after.tokens - before.tokens) / max(after.generation - before.generation, 1)
        for before, after in pairwise(recent)
    )
    if not ahead or growth <= 0:
        return None
    line, level = min(ahead, key=lambda each: each[0])
    generations = int((line - newest.tokens) // growth) + 1
    span = newest.generation - recent[0].generation
    # Reports may come out of order.
    pace_s = max((newest.at - recent[0].at).total_seconds(), 0.0) / max(span, 1)
    time = timedelta(seconds=min(pace_s * generations, _LONGEST.total_seconds()))
    return Projection(level=level, line=line, generations=generations, time=time)


def lines_ahead(judged: Health, today: EffectiveBudget) -> HasLines:
    """The lines of the calls that come after one that was judged: today's budget.

    Those of that call where it was judged by the window of a server, which only calls know, unless
    an operator has said one since, and where today's budget knows no window.
    """
    is_told = judged.limit_source is LimitSource.SERVER is not today.limit_source
    is_known = not is_told or is_operators(today)
    return today if is_known and today.critical_max_tokens is not None else judged


def _since_fall(prompts: Sequence[Prompt]) -> Sequence[Prompt]:
    """Those after the last time that the prompt became smaller."""
    start = 0
    for at, (before, after) in enumerate(pairwise(prompts), start=1):
        if after.tokens < before.tokens:
            start = at
    return prompts[start:]
