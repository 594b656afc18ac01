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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from operator import add, itemgetter
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
# Once a step is mended, all prompts fare about as small ones did: an outage is no mending.
_MENDED_WITHIN: Final = 8
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
    before, all_ = _bands_before(ordered)
    after = {share: _without(all_, bands) for share, bands in before.items()}
    step = _mean([_stepped(after[onset], before[onset]) for onset in _ONSETS])
    if math.isinf(step):
        return StepOdds(step, step)
    mended = _mean([_stepped(before[end], after[end], is_mended=True) for end in _ENDS])
    return StepOdds(step - _sloped(all_), step - mended)


def _bands_before(ordered: Sequence[Block]) -> tuple[dict[float, _Bands], _Bands]:
    """The calls of the blocks that begin before each share of them was made, and of all blocks.

    Each block is added once, whatever the number of shares: they are most of the work.
    """
    calls = sum(block.calls for block in ordered)
    left = {share: share * calls for share in (*_ONSETS, *_ENDS)}
    found: dict[float, _Bands] = {}
    so_far: dict[int, tuple[int, int]] = {}
    since = 0
    for number, block in enumerate(ordered):
        for share in [share for share, rest in left.items() if rest <= 0]:
            so_far = _bands(ordered[since:number], so_far)
            since = number
            found[share] = so_far
            del left[share]
        for share in left:
            left[share] -= block.calls
    all_ = _bands(ordered[since:], so_far)
    return found | dict.fromkeys(left, all_), all_


def _without(bands: _Bands, some: _Bands) -> _Bands:
    none = (0, 0)
    rest = {
        band: (calls - some.get(band, none)[0], clean - some.get(band, none)[1])
        for band, (calls, clean) in bands.items()
    }
    return {band: counts for band, counts in rest.items() if counts[0]}


def _bands(blocks: Iterable[Block], before: _Bands) -> dict[int, tuple[int, int]]:
    """The calls of some blocks, added to others."""
    found = dict(before)
    for block in blocks:
        for band, (calls, clean) in block.bands.items():
            told = found.get(band, (0, 0))
            found[band] = told[0] + calls, told[1] + clean
    return dict(sorted(found.items()))


def _row(calls: int, clean: int) -> _Row:
    failed = calls - clean
    return [clean * good + failed * bad for good, bad in zip(_LOG_CLEAN, _LOG_FAILED, strict=True)]


def _stepped(during: _Bands, otherwise: _Bands, *, is_mended: bool = False) -> float:
    """A step between two slices of some calls, of the others one share whatever their size.
    is_mended: that is about the share below the step, or more; else it may be any."""
    rows = [_row(*counts) for counts in during.values()]
    # What the slices up to each one tell together.
    sums = [[0.0] * _GRID]
    for row in rows:
        sums.append([one + other for one, other in zip(sums[-1], row, strict=True)])
    # By the share below the step.
    found: dict[int, list[float]] = {high: [] for high in _LEVELS}
    for place in range(1, len(rows)):
        below = sums[place]
        above = [all_ - each for all_, each in zip(sums[-1], below, strict=True)]
        for high in _LEVELS:
            for low in range(_LEVELS[0], high - _LEAST_STEP + 1, 2):
                found[high].append(below[high] + above[low])
    if not any(found.values()):
        return -math.inf
    rest = otherwise.values()
    flat = _row(sum(calls for calls, _ in rest), sum(clean for _, clean in rest))
    if not is_mended:
        all_ = [each for some in found.values() for each in some]
        return _mean(all_) + _mean([flat[level] for level in _LEVELS])
    of_high = {
        high: _mean([flat[level] for level in _LEVELS if level >= high - _MENDED_WITHIN])
        for high in _LEVELS
    }
    return _mean([each + of_high[high] for high, some in found.items() for each in some])


def _sloped(bands: _Bands) -> float:
    middle_twice = min(bands) + max(bands)
    found = [0.0] * (len(_SLOPES) * len(_MIDDLES))
    for each, counts in bands.items():
        found = list(map(add, found, _along_slopes(2 * each - middle_twice)(_row(*counts))))
    return _mean(found)


# Half slices from the middle: no two slices of 64 bits are farther apart.
@lru_cache(maxsize=4 * SLICES * 64)
def _along_slopes(halves: int) -> Callable[[_Row], tuple[float, ...]]:
    """What a row has where each slope passes so many half slices above its middle."""
    falls = [slope * (halves / 2) / SLICES * _GRID for slope in _SLOPES]
    return itemgetter(
        *(min(max(int(level - fall), 0), _GRID - 1) for fall, level in product(falls, _MIDDLES))
    )


def _mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of what these are logarithms of."""
    most = max(logs)
    if math.isinf(most):
        return most
    return most + math.log(sum(math.exp(each - most) for each in logs) / len(logs))
