"""The hard window by what a server reports of prompts that it cuts without a word.

Whatever is sent, the reported count stays at one number: the window, half of it and a little (what
llama.cpp keeps of a full one), or a little less than it where whole messages are dropped. Which
calls were cut is `core.truncation`'s to say; here their counts are put together. Refusals and
servers that name their window are asked first (core.budgets.learned_windows, ADR 24).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from helmdash.core.truncation.evidence import WINDOWS

HARD_WINDOW_VERSION: Final = "plateau-1"

# Three equal counts may be one prompt that was sent again.
LEAST_CUTS: Final = 5
# What is left of a cut prompt differs by a message at most where whole messages are dropped: with
# less than a third of the counts near the largest there is no plateau.
_NEAR: Final = 0.97
_LEAST_SHARE: Final = 1 / 3
# As core.truncation has it: four kept tokens of the beginning, and a few of the template.
_HALF_ABOVE: Final = 12
_HALF_SPREAD: Final = 16
# So many calls with the very same count were cut to it.
_PINNED: Final = 3
# Less than the two percent that a window may be off.
_ROUNDED: Final = 1.015
# A prompt that was answered whole and is longer shows that it is no window.
_DISPROOF: Final = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """What cut prompts show of a window. tokens: None where they show none. cuts: calls that were
    probably cut. met: those of them at the plateau. missing: how many more are needed."""

    tokens: int | None
    cuts: int
    met: int = 0
    reported: int | None = None
    is_half: bool = False
    missing: int = 0
    method: str = HARD_WINDOW_VERSION


def find_plateau(cuts: Mapping[int, int], *, longest_whole: int | None) -> Plateau:
    """The window that the counts of cut prompts show.

    cuts: how many calls that were probably cut reported so many tokens. longest_whole: the longest
    prompt that was answered and not cut, in tokens; None: not known.
    """
    total = sum(cuts.values())
    if total < LEAST_CUTS:
        return Plateau(tokens=None, cuts=total, missing=LEAST_CUTS - total)
    reported = max(tokens for tokens, calls in cuts.items() if calls > 0)
    near = {tokens: n for tokens, n in cuts.items() if tokens >= least_near(reported)}
    met = sum(near.values())
    if met < LEAST_CUTS or met < total * _LEAST_SHARE:
        return Plateau(tokens=None, cuts=total, met=met)
    window, is_half = _window(near, reported)
    if longest_whole is not None and longest_whole > window * _DISPROOF:
        return Plateau(tokens=None, cuts=total, met=met, reported=reported)
    return Plateau(tokens=window, cuts=total, met=met, reported=reported, is_half=is_half)


def least_near(reported: int) -> int:
    """From how many tokens on a count is at the plateau whose largest one is this."""
    return ceil(reported * _NEAR)


def _window(near: Mapping[int, int], reported: int) -> tuple[int, bool]:
    """The window, and whether the counts are of its half."""
    for window in WINDOWS:
        if 0 < reported - window // 2 <= _HALF_ABOVE and reported - min(near) <= _HALF_SPREAD:
            return window, True
    if near[reported] >= _PINNED:
        return reported, False
    # Whole messages were dropped: what is a little below a usual window was cut to it.
    usual = (each for each in WINDOWS if reported <= each <= reported * _ROUNDED)
    return next(usual, reported), False
