"""How many tokens answers need, by answers that ended and answers that met their limit.

A reply that was cut off at its limit says that it needed more, not how much. Kaplan and Meier
(1958) take both kinds together: the share of replies that are done within so many tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

OUTPUT_VERSION: Final = "output-1"

# Of a hundred replies one may be cut off; fewer ended replies say nothing of that one.
_WANTED_SHARE: Final = 0.99
LEAST_REPLIES: Final = 100
# So many cut-off replies at least: what is never cut off needs no larger limit.
LEAST_CUT_OFF: Final = 3
# What providers let people ask for is in round numbers.
_ROUNDED_TO: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputNeed:
    """tokens: within which 99 of 100 replies end; None where not so many are known to end.

    at_least: what cut-off replies show is too little. missing: replies that the method lacks.
    """

    tokens: int | None
    replies: int
    cut_off: int
    at_least: int | None = None
    missing: int = 0
    method: str = OUTPUT_VERSION


def find_output_need(ended: Mapping[int, int], cut_off: Mapping[int, int]) -> OutputNeed:
    """ended, cut_off: how many replies ended by themselves, or at their limit, after so many
    tokens."""
    replies, cuts = sum(ended.values()), sum(cut_off.values())
    total = replies + cuts
    missing = max(LEAST_REPLIES - total, 0)
    largest = max((tokens for tokens, n in cut_off.items() if n > 0), default=None)
    if missing or cuts < LEAST_CUT_OFF:
        return OutputNeed(
            tokens=None, replies=total, cut_off=cuts, at_least=largest, missing=missing
        )
    left, open_share = total, 1.0
    for tokens in sorted({*ended, *cut_off}):
        done = ended.get(tokens, 0)
        if left > 0 and done:
            open_share *= 1 - done / left
        left -= done + cut_off.get(tokens, 0)
        if open_share <= 1 - _WANTED_SHARE + 1e-12:
            found = _rounded(tokens)
            return OutputNeed(tokens=found, replies=total, cut_off=cuts, at_least=largest)
    return OutputNeed(tokens=None, replies=total, cut_off=cuts, at_least=largest)


def _rounded(tokens: int) -> int:
    return -(-tokens // _ROUNDED_TO) * _ROUNDED_TO
