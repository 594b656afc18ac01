"""The safe input: the largest prompts before the share of clean answers falls.

A ceiling is found where (1) enough calls lie on both sides of it, (2) prompts above go wrong more
often than prompts below within blocks of like calls (core.evidence.stratified), far beyond chance,
(3) it happens at one size and not little by little (core.evidence.shape), (4) it is seen in several
stretches of time, also without the one that shows it most, and lately, (5) larger prompts still do
not fare well again. Each condition has a word, so that somebody is told which one is missing.

How often it is right and wrong: docs/evidence.md, measured by bench/evidence.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

from helmdash.core.evidence.shape import missing_calls, step_odds
from helmdash.core.evidence.sized_cells import SizedCells
from helmdash.core.evidence.stratified import (
    UNKNOWN_FALL,
    Block,
    Fall,
    blocks_of,
    fall_between,
    falls_at,
)
from helmdash.core.rollups.bands import band_end, band_start

SAFE_INPUT_VERSION: Final = "safe-input-5"

# Fewer say nothing of a share: twenty calls have an interval of forty points.
LEAST_BELOW: Final = 30
LEAST_ABOVE: Final = 20
# In standard errors, for some fifteen places where a fall may be, each looked at twice.
_LEAST_Z: Final = 3.2
# Without the block that shows it most.
_LEAST_Z_WITHOUT: Final = 2.2
_LEAST_BLOCKS: Final = 4.0
# Of the whole: worth a budget's edit, and what forty points that must be found hardly ever look
# like by chance, even where they came with a version of the middle. Beside the ceiling, where fewer
# calls are: less, for the same reason, and in standard errors what outages hardly ever give.
_LEAST_FALL: Final = 0.2
_LEAST_FALL_NEAR: Final = 0.1
_LEAST_Z_NEAR: Final = 1.0
# The bands beside the ceiling that are compared, on either side: a power of two.
_NEAR: Final = 2
# How much likelier a step has to be than what is gradual, as a natural logarithm. Less than
# nothing, for a fall of forty points that is missed costs more than a slope of ten for each power
# of two that is taken for one; docs/evidence.md has the curve.
_LEAST_ODDS: Final = -0.8
# Than a step that was mended: even where large prompts are no longer sent.
_LEAST_ODDS_MENDED: Final = -5.0
# Of the fall, what must be left among still larger prompts.
_LEAST_LEFT: Final = 0.4
# Of the later half, whose calls are fewer.
_LATE_BLOCKS: Final = 2.0
_LEAST_FALL_LATE: Final = 0.15
_LEAST_Z_LATE: Final = 1.3
# By what more is asked of a half that is looked at because the whole showed nothing, in standard
# errors and in odds, and of a part.
_SECOND_LOOK: Final = 1.1
_SECOND_LOOK_ODDS: Final = 1.5
_PART: Final = 1.3


class Finding(StrEnum):
    """What the calls of a model say of its safe input."""

    CEILING = "ceiling"
    NO_FALL = "no_fall"
    TOO_FEW = "too_few"
    # Something falls, but it is not shown to be the size.
    GRADUAL = "gradual"
    NOT_SPREAD = "not_spread"
    NOT_LATELY = "not_lately"
    RECOVERS = "recovers"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeInput:
    """What was found, and by how many calls.

    ceiling: the largest size (tokens, or bytes where cells are of bytes) of the last good band;
    None but for Finding.CEILING. missing: how many calls more the method needs; 0: enough.
    below, above: (calls, clean) beside the ceiling. fall: of the whole, compared within blocks.
    first_at: the stretch of time that the calls begin with, where only later ones were asked; None:
    all of them were.
    """

    finding: Finding
    calls: int
    ceiling: int | None = None
    band: int | None = None
    missing: int = 0
    below: tuple[int, int] = (0, 0)
    above: tuple[int, int] = (0, 0)
    fall: Fall = UNKNOWN_FALL
    first_at: int | None = None
    method: str = SAFE_INPUT_VERSION

    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The least and the largest size of the calls of `below`, and of `above`; None where no
        ceiling was found."""
        if self.band is None:
            return None
        below, above = _below(self.band, _NEAR), _above(self.band, _NEAR)
        # The first band has those without any size, too.
        least = band_start(below[0]) if below[0] else 0
        return (least, band_end(below[-1])), (band_start(above[0]), band_end(above[-1]))


def find_safe_input(cells: SizedCells, *, is_part: bool = False) -> SafeInput:
    """The ceiling that calls show, or why there is none.

    is_part: of a model's calls only some are looked at (those of one upstream, say) besides all of
    them: more is asked of what is looked at several times.

    Where all calls together show no fall, or too few stretches of time do, the later half is asked
    alone: a version that cannot take large prompts may be new. Not where they show a slope: half of
    the calls tell it less well from a step.
    """
    more = _PART if is_part else 1.0
    found = _find(cells, more, _LEAST_ODDS)
    if found.finding not in (Finding.NO_FALL, Finding.NOT_SPREAD):
        return found
    half = _later_half(cells)
    later = _find(half, more * _SECOND_LOOK, _LEAST_ODDS + _SECOND_LOOK_ODDS)
    if later.finding is not Finding.CEILING:
        return found
    return replace(later, first_at=min(cell.at for cell in half.by_band))


def _find(cells: SizedCells, more: float, least_odds: float) -> SafeInput:
    blocks = blocks_of(cells.by_band)
    sliced = cache(lambda: blocks_of(cells.make_slices()))
    totals = _totals(blocks)
    calls = sum(calls for calls, _ in totals.values())
    places = _places({band: calls for band, (calls, _) in totals.items()})
    if not places:
        missing = max(LEAST_BELOW + LEAST_ABOVE - calls, 1)
        return SafeInput(finding=Finding.TOO_FEW, calls=calls, missing=missing)
    falls = falls_at(blocks, places)
    at = max(places, key=lambda place: falls[place].z)
    finding = _judge(blocks, falls[at], at, more, sliced, least_odds)
    return SafeInput(
        finding=finding,
        calls=calls,
        missing=missing_calls(sliced()) if finding is Finding.TOO_FEW else 0,
        ceiling=band_end(at) if finding is Finding.CEILING else None,
        band=at if finding is Finding.CEILING else None,
        below=_count(totals, _below(at, _NEAR)),
        above=_count(totals, _above(at, _NEAR)),
        fall=falls[at],
    )


def _totals(blocks: Iterable[Block]) -> dict[int, tuple[int, int]]:
    """The calls of each band, and the clean ones, of all blocks."""
    found: dict[int, tuple[int, int]] = {}
    for block in blocks:
        for band, (calls, clean) in block.bands.items():
            before = found.get(band, (0, 0))
            found[band] = before[0] + calls, before[1] + clean
    return found


def _later_half(cells: SizedCells) -> SizedCells:
    """The calls of the stretches of time after the one in which half of all were made, so that a
    time tells which they are."""
    half = sum(cell.calls for cell in cells.by_band) / 2
    for cell in sorted(cells.by_band, key=lambda cell: cell.at):
        half -= cell.calls
        if half <= 0:
            return cells.after(cell.at)
    return cells


def _places(totals: Mapping[int, int]) -> list[int]:
    """The last bands below which, and above which, there are enough calls."""
    found, below, calls = [], 0, sum(totals.values())
    for band in sorted(totals)[:-1]:
        below += totals[band]
        if below >= LEAST_BELOW and calls - below >= LEAST_ABOVE and totals[band]:
            found.append(band)
    return found


def _judge(
    blocks: Sequence[Block],
    fall: Fall,
    at: int,
    more: float,
    sliced: Callable[[], Sequence[Block]],
    least_odds: float,
) -> Finding:
    if fall.z < _LEAST_Z * more or fall.points is None or fall.points < _LEAST_FALL:
        return Finding.NO_FALL
    if fall.blocks < _LEAST_BLOCKS or _without_worst(blocks, at).z < _LEAST_Z_WITHOUT:
        return Finding.NOT_SPREAD
    beyond = fall_between(blocks, small=_below(at), large=range(at + _NEAR + 1, _TOP))
    if beyond.points is not None and beyond.points + beyond.error < fall.points * _LEAST_LEFT:
        return Finding.RECOVERS
    near = fall_between(blocks, small=_below(at, _NEAR), large=_above(at, _NEAR))
    if near.points is None or near.points < _LEAST_FALL_NEAR or near.z < _LEAST_Z_NEAR:
        return Finding.GRADUAL
    if missing_calls(sliced()):
        return Finding.TOO_FEW
    odds = step_odds(sliced())
    if odds.to_gradual < least_odds:
        return Finding.GRADUAL
    if odds.to_mended < _LEAST_ODDS_MENDED or not _is_so_lately(blocks, at):
        return Finding.NOT_LATELY
    return Finding.CEILING


def _is_so_lately(blocks: Sequence[Block], at: int) -> bool:
    """Whether the later half of the blocks shows it, too, as far as it has calls on both sides:
    people may have stopped sending large prompts."""
    late = sorted(blocks, key=lambda block: block.last_at)[len(blocks) // 2 :]
    fall = fall_between(late, small=_below(at), large=_above(at))
    if fall.points is None or fall.blocks < _LATE_BLOCKS:
        return True
    return fall.points >= _LEAST_FALL_LATE and fall.z >= _LEAST_Z_LATE


def _without_worst(blocks: Sequence[Block], at: int) -> Fall:
    def excess(block: Block) -> float:
        each = fall_between([block], small=_below(at), large=_above(at))
        return (each.points or 0) * block.calls

    worst = max(blocks, key=excess)
    rest = [block for block in blocks if block is not worst]
    return fall_between(rest, small=_below(at), large=_above(at))


# No size of 64 bits has a band as high.
_TOP: Final = 2**8


def _below(band: int, most: int = _TOP) -> range:
    """The band and those under it; `most`: so many of them."""
    return range(max(band + 1 - most, 0), band + 1)


def _above(band: int, most: int = _TOP) -> range:
    return range(band + 1, band + 1 + most)


def _count(totals: Mapping[int, tuple[int, int]], bands: range) -> tuple[int, int]:
    inside = [told for band, told in totals.items() if band in bands]
    return sum(calls for calls, _ in inside), sum(clean for _, clean in inside)
