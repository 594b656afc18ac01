"""Comparing small prompts with large ones, like with like only.

Calls are compared within *blocks*: calls of one upstream, model version, purpose and prompt variant
that were made one after the other. What befalls small and large prompts alike (an outage, another
version, another mix of purposes) differs between blocks and not within one, so it cancels. Mantel
and Haenszel (1959) weigh the blocks; the variance is the larger of what chance gives and of how far
the blocks disagree (the sandwich of Zeger and Liang, 1986), so that one block, however bad, is
never more than about one standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

# Calls of a block at least, where there are as many. With fewer, pairs to compare are lost; with
# more, blocks reach over the ends of an outage. Of 6, 8, 10 and 12 this mistook least.
BLOCK_CALLS: Final = 6
# More blocks than this say nothing more, and cost time.
_MOST_BLOCKS: Final = 500
_AT: Final = attrgetter("at")


Stratum = tuple[str, ...]


class Cell(NamedTuple):
    """Calls of one kind in one stretch of time and one band.

    stratum: what else may decide how well calls go. at: the number of the stretch of time. clean:
    how many of `calls` were.
    """

    stratum: Stratum
    at: int
    band: int
    calls: int
    clean: int


@dataclass(slots=True)
class Block:
    """Calls of one stratum in consecutive stretches of time: by band, calls and clean ones."""

    first_at: int
    last_at: int
    calls: int = 0
    bands: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """How far the share of clean calls falls from the small side to the large one.

    points: of one (0.4: forty points), None where no block has both sides. error: its standard
    error. blocks: the effective number of blocks that tell.
    """

    points: float | None = None
    error: float = math.inf
    blocks: float = 0.0

    @property
    def z(self) -> float:
        """In standard errors; 0 where nothing is known."""
        if self.points is None or self.error == 0 or math.isinf(self.error):
            return 0.0
        return self.points / self.error

    def interval(self, z: float = 1.959963984540054) -> tuple[float, float] | None:
        """The 95 % interval; None where nothing is known."""
        if self.points is None or math.isinf(self.error):
            return None
        reach = z * self.error
        return max(self.points - reach, -1.0), min(self.points + reach, 1.0)


UNKNOWN_FALL: Final = Fall()


def blocks_of(cells: Iterable[Cell]) -> tuple[Block, ...]:
    """Consecutive stretches of time of each stratum, put together until they have BLOCK_CALLS, or
    as many as keep the blocks few.

    What is left at the end joins the block before it.
    """
    found: list[Block] = []
    by_stratum: dict[Stratum, list[Cell]] = {}
    calls = 0
    for cell in cells:
        by_stratum.setdefault(cell.stratum, []).append(cell)
        calls += cell.calls
    least = max(BLOCK_CALLS, calls // _MOST_BLOCKS)
    for stratum in sorted(by_stratum):
        found.extend(_blocks(sorted(by_stratum[stratum], key=_AT), least))
    return tuple(found)


def fall_between(blocks: Sequence[Block], *, small: range, large: range) -> Fall:
    """How far clean calls fall from the bands `small` to the bands `large`, within blocks."""
    sides = [(_side(block.bands, small), _side(block.bands, large)) for block in blocks]
    return _mantel_haenszel([(low, high) for low, high in sides if low[0] and high[0]])


def falls_at(blocks: Sequence[Block], places: Sequence[int]) -> dict[int, Fall]:
    """The fall from all bands up to a place to those above it, for each of some places, ascending:
    as `fall_between`, in one walk."""
    pairs: dict[int, list[tuple[_Side, _Side]]] = {place: [] for place in places}
    for block in blocks:
        bands = sorted(block.bands.items())
        all_clean = sum(clean for _, (_, clean) in bands)
        below = below_clean = at = 0
        for place in places:
            while at < len(bands) and bands[at][0] <= place:
                below, below_clean = below + bands[at][1][0], below_clean + bands[at][1][1]
                at += 1
            if below and below < block.calls:
                above = (block.calls - below, all_clean - below_clean)
                pairs[place].append(((below, below_clean), above))
    return {place: _mantel_haenszel(found) for place, found in pairs.items()}


def _blocks(cells: Sequence[Cell], least: int) -> list[Block]:
    """Of one stratum, in the order of time."""
    found: list[Block] = []
    # Each cell of a year of days is here several times, so no function is called for it.
    calls, bands = least, dict[int, tuple[int, int]]()
    latest = None
    for _, at, band, n, clean in cells:
        if at != latest:
            if found:
                found[-1].calls = calls
            if calls >= least:
                calls, bands = 0, {}
                found.append(Block(at, at, bands=bands))
            found[-1].last_at = latest = at
        calls += n
        before = bands.get(band)
        bands[band] = (n, clean) if before is None else (before[0] + n, before[1] + clean)
    if found:
        found[-1].calls = calls
    if len(found) > 1 and calls < least:
        _join(found[-2], found.pop())
    return found


def _join(block: Block, rest: Block) -> None:
    for band, (calls, clean) in rest.bands.items():
        before = block.bands.get(band, (0, 0))
        block.bands[band] = before[0] + calls, before[1] + clean
    block.calls += rest.calls
    block.last_at = rest.last_at


_Side = tuple[int, int]


def _side(bands: Mapping[int, tuple[int, int]], wanted: range) -> _Side:
    calls = clean = 0
    for band, told in bands.items():
        if band in wanted:
            calls, clean = calls + told[0], clean + told[1]
    return calls, clean


def _mantel_haenszel(pairs: Sequence[tuple[_Side, _Side]]) -> Fall:
    """The weighted risk difference of pairs of (calls, clean), small side first."""
    weights, differences = [], []
    by_chance = 0.0
    for (low, low_clean), (high, high_clean) in pairs:
        n = low + high
        weight = low * high / n
        clean = low_clean + high_clean
        weights.append(weight)
        differences.append(low_clean / low - high_clean / high)
        if n > 1:
            # The hypergeometric variance of what the large side has of the clean calls.
            by_chance += clean * (n - clean) / n * low * high / n / (n - 1)
    total = sum(weights)
    if not total:
        return UNKNOWN_FALL
    points = sum(map(float.__mul__, weights, differences)) / total
    apart = sum((w * (each - points)) ** 2 for w, each in zip(weights, differences, strict=True))
    effective = total**2 / sum(w * w for w in weights)
    # A few blocks tell less of how far blocks disagree.
    apart *= effective / max(effective - 1, 0.5)
    return Fall(points=points, error=math.sqrt(max(by_chance, apart)) / total, blocks=effective)
