"""Whether clean answers fall at one size, or little by little, or no more.

Kinds of models of one record are compared by their marginal likelihood (Kass and Raftery, 1995):
how likely what happened is, averaged over all their parameters. A kind that could explain anything
explains nothing well, so none needs a penalty, and shares near nought and one, where a straight
line by least squares goes wrong, are taken as they are.

*Step*: up to some size one share is clean and beyond it a share that is lower by `_LEAST_STEP` or
more, since the beginning or since a moment of the first half (a version came). *Gradual*, of one of
three shapes: a *line* falls by at most `_SLOPES` with each power of two, or not at all; a *bend* is
flat up to some size and falls from there on as a line does; a *bow* falls with the size itself, so
by twice as much with each power of two. *Mended*: there was a step, until some moment, and none
since.

All calls are taken together here. What troubles small and large prompts alike is kept apart by the
blocks of core.evidence.stratified, by which a fall is found in the first place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from operator import add, itemgetter, sub
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
# Each deeper one, against the least: together they weigh about as much as the least alone, which is
# the one that is hard to tell from what is gradual.
_LOG_DEEPER: Final = math.log(1 / 14)
# The calls below a step, and within the power of two above it: fewer tell no shape.
LEAST_UNDER: Final = 30
LEAST_OVER: Final = 35
# Once a step is mended, all prompts fare about as small ones did: an outage is no mending.
_MENDED_WITHIN: Final = 8
# By a power of two: up to 14 points are a slope, which no ceiling helps.
_SLOPES: Final = tuple(each / 100 for each in range(0, 15, 2))
# Where a line passes through the middle of the slices, also where it is cut off there.
_MIDDLES: Final = range(-10, 61, 2)
# Of a bend and a bow: the share of the smallest prompts, and how it falls. Bends are steeper than
# what falls hardly at all; of a bow so much is gone at the place that names it.
_FIRST_LEVELS: Final = range(21, _GRID, 3)
_BENDS: Final = (0.05, 0.08, 0.11, 0.14)
_BOW: Final = 0.4
# A bow may have its place beyond all prompts: two powers of two, where a tenth of it is left.
_BOWS_BEYOND: Final = 2 * SLICES
# How likely each is before anything is known.
_LOG_LINE, _LOG_BEND, _LOG_BOW = math.log(0.8), math.log(0.1), math.log(0.1)
# Shares of the calls after which a step begins, or ends. That it was there from the start is as
# likely as this many of the others: what begins anywhere fits a slope too well.
_FROM_THE_START: Final = 16
_ONSETS: Final = (0.0, 0.125, 0.25, 0.375, 0.5)
_LOG_ONSETS: Final = [math.log(1 if onset else _FROM_THE_START) for onset in _ONSETS]
_ENDS: Final = (0.25, 0.375, 0.5, 0.625, 0.75)

# The calls of each slice (core.rollups.bands), and the clean ones.
_Bands = Mapping[int, tuple[int, int]]
# The log likelihood of calls at each share of the grid.
_Row = list[float]


class StepOdds(NamedTuple):
    """How much likelier the calls are by a step that is there than by another kind of model, as
    natural logarithms; -inf where there is no place for a step."""

    to_gradual: float
    to_mended: float


def step_odds(blocks: Iterable[Block]) -> StepOdds:
    """How a step compares with what is gradual, and with a step that was mended. blocks: of slices.

    Some 200,000 sums: 25 ms, so it is asked last.
    """
    ordered = sorted(blocks, key=lambda block: block.first_at)
    before, all_ = _bands_before(ordered)
    after = {share: _without(all_, bands) for share, bands in before.items()}
    places = step_places(all_)
    if not places:
        return StepOdds(-math.inf, -math.inf)
    steps = [_stepped(after[onset], before[onset], places) for onset in _ONSETS]
    step = _mean(list(map(add, steps, _LOG_ONSETS))) - _mean(_LOG_ONSETS)
    ended = [_stepped(before[end], after[end], places, is_mended=True) for end in _ENDS]
    return StepOdds(step - _gradual(all_), step - _mean(ended))


def step_places(bands: _Bands) -> list[int]:
    """The first slices of those beyond a step, wherever enough calls lie on both sides."""
    return [
        band
        for band in sorted(bands)
        if _between(bands, 0, band) >= LEAST_UNDER
        and _between(bands, band, band + SLICES) >= LEAST_OVER
    ]


def missing_calls(blocks: Iterable[Block]) -> int:
    """How many calls more a step needs beyond it, wherever there are the most; 0: enough."""
    bands = _bands(blocks, {})
    above = [
        _between(bands, band, band + SLICES)
        for band in bands
        if _between(bands, 0, band) >= LEAST_UNDER
    ]
    return max(LEAST_OVER - max(above, default=0), 0)


def _between(bands: _Bands, first: int, end: int) -> int:
    return sum(calls for band, (calls, _) in bands.items() if first <= band < end)


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


def _stepped(
    during: _Bands, otherwise: _Bands, places: Sequence[int], *, is_mended: bool = False
) -> float:
    """A step at one of some slices, of some calls; of the others one share whatever their size.
    is_mended: that is about the share below the step, or more; else it may be any."""
    rows = {band: _row(*counts) for band, counts in during.items()}
    all_ = [math.fsum(each) for each in zip(*rows.values(), strict=True)] or [0.0] * _GRID
    # By the share below the step.
    found: dict[int, list[float]] = {high: [] for high in _LEVELS}
    below, left = [0.0] * _GRID, sorted(rows, reverse=True)
    for place in places:
        while left and left[-1] < place:
            below = list(map(add, below, rows[left.pop()]))
        above = list(map(sub, all_, below))
        for high in _LEVELS:
            least = high - _LEAST_STEP
            if least >= _LEVELS[0]:
                found[high].append(below[high] + above[least])
                lows = range(_LEVELS[0], least, 2)
                found[high].extend(below[high] + above[low] + _LOG_DEEPER for low in lows)
    rest = otherwise.values()
    flat = _row(sum(calls for calls, _ in rest), sum(clean for _, clean in rest))
    if not is_mended:
        every = [each for some in found.values() for each in some]
        return _mean(every) + _mean([flat[level] for level in _LEVELS])
    of_high = {
        high: _mean([flat[level] for level in _LEVELS if level >= high - _MENDED_WITHIN])
        for high in _LEVELS
    }
    return _mean([each + of_high[high] for high, some in found.items() for each in some])


def _gradual(bands: _Bands) -> float:
    """A line, a bend or a bow, each as likely as it is before anything is known."""
    rows = {band: _row(*counts) for band, counts in bands.items()}
    first, last = min(rows), max(rows)
    bends = _along_all(rows, range(first, last + 1, _BY), _bend)
    bows = _along_all(rows, range(first, last + _BOWS_BEYOND + 1, _BY), _bow)
    return _sum([_lines(rows) + _LOG_LINE, bends + _LOG_BEND, bows + _LOG_BOW])


def _lines(rows: Mapping[int, _Row]) -> float:
    middle_twice = min(rows) + max(rows)
    found = [0.0] * (len(_SLOPES) * len(_MIDDLES))
    for each, row in rows.items():
        found = list(map(add, found, _line(2 * each - middle_twice)(row)))
    return _mean(found)


def _along_all(rows: Mapping[int, _Row], places: Iterable[int], shape: _Shape) -> float:
    """A shape that begins at any of some slices."""
    every: list[float] = []
    for place in places:
        every.extend(
            map(sum, zip(*(shape(each - place)(row) for each, row in rows.items()), strict=True))
        )
    return _mean(every)


# Half a power of two lies between the places that are tried for a bend or a bow.
_BY: Final = SLICES // 2
# What a row has along each curve of a shape, so many slices (of a line: half slices) from where it
# begins. No two slices of 64 bits are farther apart than these remember.
_Getter = Callable[[_Row], tuple[float, ...]]
_Shape = Callable[[int], _Getter]


@lru_cache(maxsize=4 * SLICES * 64)
def _line(halves: int) -> _Getter:
    falls = [slope * (halves / 2) / SLICES * _GRID for slope in _SLOPES]
    return _levels(level - fall for fall, level in product(falls, _MIDDLES))


@lru_cache(maxsize=2 * SLICES * 64)
def _bend(slices: int) -> _Getter:
    falls = [slope * max(slices, 0) / SLICES * _GRID for slope in _BENDS]
    return _levels(level - fall for fall, level in product(falls, _FIRST_LEVELS))


@lru_cache(maxsize=2 * SLICES * 64)
def _bow(slices: int) -> _Getter:
    fall = _BOW * _GRID * 2.0 ** min(slices / SLICES, 2.0)
    return _levels(level - fall for level in _FIRST_LEVELS)


def _levels(levels: Iterable[float]) -> _Getter:
    return itemgetter(*(min(max(int(level), 0), _GRID - 1) for level in levels))


def _mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of what these are logarithms of."""
    return _sum(logs) - math.log(len(logs))


def _sum(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(sum(math.exp(each - most) for each in logs))
