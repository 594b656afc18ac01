"""How well a fall of forty points could be told from a steep slope at all.

A test that is given what no method has: the exact sizes, and by which law the simulated fleets were
drawn (tests.support.fleets: the range of shares, of slopes, and that the fall is forty points).
The likelihood ratio of the two laws is the best test there is (Neyman and Pearson, 1933), so what
it leaves untold at some error cannot be told by so many calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from bench.table import Row
from helmdash.core.rollups.bands import size_band
from tests.support import fleets
from tests.support.fleets import SimCall

# As the fleets are drawn: shares below the fall; shares and slopes of a slope, by a power of two.
_BASES = [0.45 + 0.02 * each for each in range(28)]
_FALL = 0.4
_SLOPES = [0.07 + 0.01 * each for each in range(8)]
_TOPS = [0.75 + 0.04 * each for each in range(7)]
_MIDDLES = [11.5 + 0.5 * each for each in range(7)]
_LEAST, _MOST = 0.02, 0.99
# Of the steep slopes so many may be taken for a fall.
_WRONG = 0.02


def row(fleet_count: int, calls: int) -> Row:
    """The share of falls that the test finds within a band where it is wrong as often as is asked
    of the method."""
    slopes = sorted(
        _judged(fleets.steep(Random(f"law-steep-{number}"), calls).calls)[0]
        for number in range(fleet_count)
    )
    least = slopes[math.ceil((1 - _WRONG) * fleet_count) - 1]
    found = 0
    for number in range(fleet_count):
        fleet = fleets.weak_cliff(Random(f"law-fall-{number}"), calls)
        odds, largest = _judged(fleet.calls)
        off = size_band(largest) - size_band(fleet.cliff or largest)
        found += odds > least and -2 <= off <= 1
    return Row(
        name="a fall of forty points, by who knows the fleets' law",
        figure=f"{found / fleet_count:.1%} found at {_WRONG:.0%} of steep slopes",
        against=f"{fleet_count} fleets of each",
        ratio=None,
        goal="",
        ok=None,
    )


def _judged(calls: Sequence[SimCall]) -> tuple[float, int]:
    """How much likelier the calls are by a fall than by a slope, as a logarithm, and the largest
    size below the likeliest fall."""
    ordered = sorted((call.tokens, call.is_clean) for call in calls)
    by_place = _falls([is_clean for _, is_clean in ordered])
    at = max(range(len(by_place)), key=by_place.__getitem__)
    slope = _slope([(math.log2(tokens), is_clean) for tokens, is_clean in ordered])
    return _mean(by_place) - slope, ordered[at][0]


def _falls(clean: Sequence[bool]) -> list[float]:
    """The log likelihood of a fall behind each call, by size."""
    total, good, found = sum(clean), 0, []
    for place, is_clean in enumerate(clean[:-1], 1):
        good += is_clean
        sides = (good, place - good, total - good, len(clean) - place - total + good)
        found.append(_mean([_of_sides(sides, base) for base in _BASES]))
    return found


def _of_sides(sides: tuple[int, int, int, int], base: float) -> float:
    low = max(base - _FALL, _LEAST)
    shares = (base, 1 - base, low, 1 - low)
    return math.fsum(n * math.log(share) for n, share in zip(sides, shares, strict=True))


def _slope(calls: Sequence[tuple[float, bool]]) -> float:
    found = []
    for each in _SLOPES:
        for top in _TOPS:
            for middle in _MIDDLES:
                level = top + each * (middle - 2)
                found.append(_along(calls, level, each))
    return _mean(found)


def _along(calls: Sequence[tuple[float, bool]], level: float, slope: float) -> float:
    total = 0.0
    for size, is_clean in calls:
        share = min(max(level - slope * size, _LEAST), _MOST)
        total += math.log(share if is_clean else 1 - share)
    return total


def _mean(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(math.fsum(math.exp(each - most) for each in logs) / len(logs))
