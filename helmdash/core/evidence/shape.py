"""Whether clean answers fall at one size, or little by little, or no more.

Three kinds of models of one record are compared by their marginal likelihood (Kass and Raftery,
1995): how likely what happened is, averaged over all their parameters. A kind that could explain
anything explains nothing well, so none needs a penalty, and shares near nought and one, where a
straight line by least squares goes wrong, are taken as they are.

*Step*: up to some size one share is clean and beyond it a share that is lower by `_LEAST_STEP`,
since the beginning or since a moment of the first half (a version came). *Slope*: the share falls
by at most `_SLOPES` with each power of two, or not at all. *Mended*: there was a step, until some
moment, and none since.

All calls are taken together here. What troubles small and large prompts alike is kept apart by the
blocks of core.evidence.stratified, by which a fall is found in the first place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from helmdash.core.evidence.stratified import Block
from helmdash.core.rollups.bands import SLICES

# Shares are tried in steps of 2.5 points: what 300 calls tell apart is coarser.
_GRID: Final = 40
_LOG_CLEAN: Final = [math.log((each + 0.5) / _GRID) for each in range(_GRID)]
_LOG_FAILED: Final = _LOG_CLEAN[::-1]
# The shares of a step: every second one, up to 98.75 %.
_LEVELS: Final = range(1, _GRID, 2)
# Of a step, in points of the grid: forty points, the least that must be found (docs/evidence.md).
_LEAST_STEP: Final = 16
# By a power of two: up to 14 points are a slope, which no ceiling helps.
_SLOPES: Final = tuple(each / 100 for each in range(0, 15, 2))
# Where a slope passes through the middle of the slices, also where it is cut off there.
_MIDDLES: Final = range(-_GRID, 2 * _GRID + 1, 2)
# Shares of the calls after which a step begins, or ends.
_ONSETS: Final = (0.0, 0.125, 0.25, 0.375, 0.5)
_ENDS: Final = (0.25, 0.375, 0.5, 0.625, 0.75)

# The calls of each slice (core.rollups.bands), and the clean ones.
_Bands = Mapping[int, tuple[int, int]]
# The log likelihood of calls at each share of the grid.
_Row = list[float]


class StepOdds(NamedTuple):
    """How much likelier the calls are by a step that is there than by another kind of model, as
    natural logarithms; -inf where there is no place for a step."""

    to_slope: float
    to_mended: float


def step_odds(blocks: Iterable[Block]) -> StepOdds:
    """How a step compares with a slope, and with a step that was mended. blocks: of slices.

    Some 100,000 sums: 20 ms, so it is asked last.
    """
    ordered = sorted(blocks, key=lambda block: block.first_at)
    step = _mean([_stepped(*_split(ordered, onset)[::-1]) for onset in _ONSETS])
    if math.isinf(step):
        return StepOdds(step, step)
    mended = _mean([_stepped(*_split(ordered, end)) for end in _ENDS])
    return StepOdds(step - _sloped(_bands(ordered)), step - mended)


def _split(ordered: Sequence[Block], share: float) -> tuple[Sequence[Block], Sequence[Block]]:
    """The blocks that begin before some share of the calls were made, and the others."""
    left = share * sum(block.calls for block in ordered)
    for number, block in enumerate(ordered):
        if left <= 0:
            return ordered[:number], ordered[number:]
        left -= block.calls
    return ordered, ()


def _bands(blocks: Iterable[Block]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for block in blocks:
        for band, (calls, clean) in block.bands.items():
            before = found.get(band, (0, 0))
            found[band] = before[0] + calls, before[1] + clean
    return dict(sorted(found.items()))


def _row(calls: int, clean: int) -> _Row:
    failed = calls - clean
    return [clean * good + failed * bad for good, bad in zip(_LOG_CLEAN, _LOG_FAILED, strict=True)]


def _stepped(during: Sequence[Block], otherwise: Sequence[Block]) -> float:
    """A step between two slices in some of the blocks, in the others one share of all sizes."""
    rows = [_row(*counts) for counts in _bands(during).values()]
    # What the slices up to each one tell together.
    sums = [[0.0] * _GRID]
    for row in rows:
        sums.append([one + other for one, other in zip(sums[-1], row, strict=True)])
    found = []
    for place in range(1, len(rows)):
        below = sums[place]
        above = [all_ - each for all_, each in zip(sums[-1], below, strict=True)]
        for high in _LEVELS:
            for low in range(_LEVELS[0], high - _LEAST_STEP + 1, 2):
                found.append(below[high] + above[low])
    if not found:
        return -math.inf
    rest = [counts for block in otherwise for counts in block.bands.values()]
    flat = _row(sum(calls for calls, _ in rest), sum(clean for _, clean in rest))
    return _mean(found) + _mean([flat[level] for level in _LEVELS])


def _sloped(bands: _Bands) -> float:
    rows = {each: _row(*counts) for each, counts in bands.items()}
    middle = (min(bands) + max(bands)) / 2
    found = []
    for slope in _SLOPES:
        fall = {each: slope * (each - middle) / SLICES * _GRID for each in bands}
        for level in _MIDDLES:
            found.append(
                sum(
                    row[min(max(int(level - fall[each]), 0), _GRID - 1)]
                    for each, row in rows.items()
                )
            )
    return _mean(found)


def _mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of what these are logarithms of."""
    most = max(logs)
    if math.isinf(most):
        return most
    return most + math.log(sum(math.exp(each - most) for each in logs) / len(logs))
