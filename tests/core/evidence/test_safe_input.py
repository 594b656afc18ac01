"""Ceilings are found where there is a cliff, and hardly ever elsewhere (docs/evidence.md)."""

from __future__ import annotations

from random import Random

import pytest

from helmdash.core.evidence.learning import Told, learn
from helmdash.core.evidence.safe_input import Finding, find_safe_input
from helmdash.core.evidence.sized_cells import sized
from helmdash.core.evidence.stratified import Cell, blocks_of, fall_between, falls_at
from helmdash.core.rollups.bands import (
    band_end,
    band_of_slice,
    band_start,
    middle_slice,
    size_band,
    size_slice,
)
from tests.builders import make_budget
from tests.support import fleets

# Few, for this runs with every change; `make bench ARGS=evidence` draws hundreds.
_FLEETS = 12


@pytest.mark.parametrize("kind", fleets.KINDS, ids=lambda kind: kind.__name__)
def test_what_is_found_is_nearly_always_the_truth(kind: fleets.Kind) -> None:
    drawn = [kind(Random(f"test-{number}"), 300) for number in range(_FLEETS)]

    right = sum(
        fleets.is_right(fleet, find_safe_input(sized(fleets.cells_of(fleet.calls))))
        for fleet in drawn
    )

    assert right >= _FLEETS - 3


@pytest.mark.parametrize(
    ("cells", "finding", "missing"),
    [
        ([], Finding.TOO_FEW, 50),
        ([Cell((), 0, 20, 49, 49)], Finding.TOO_FEW, 1),
        # Enough calls, all of one size: nothing to compare.
        ([Cell((), at, 20, 10, 5) for at in range(40)], Finding.TOO_FEW, 1),
        # Just above the fall there are too few to tell it from a slope.
        (
            [Cell((), at, 20, 2, 2) for at in range(40)]
            + [Cell((), at, 21, 1, 0) for at in range(25)],
            Finding.TOO_FEW,
            10,
        ),
        # All in one hour: no telling from an outage.
        ([Cell((), 0, 20, 100, 99), Cell((), 0, 21, 100, 5)], Finding.NOT_SPREAD, 0),
        (
            [Cell((), at, band, 5, 5 - 4 * (band > 20)) for at in range(40) for band in (20, 21)],
            Finding.CEILING,
            0,
        ),
        # A little less with each band, twelve points for a power of two.
        (
            [
                Cell((), at, band, 50, 50 - 3 * (band - 16))
                for at in range(20)
                for band in range(16, 26)
            ],
            Finding.GRADUAL,
            0,
        ),
        # A version of the last third took it away.
        (
            [
                Cell((), at, band, 5, 5 - 4 * (band > 20 and at < 26))
                for at in range(40)
                for band in (20, 21)
            ],
            Finding.NOT_LATELY,
            0,
        ),
        # Nearly all of the last third failed, small ones too: an outage took nothing away.
        (
            [
                Cell((), at, band, 5, 5 - 4 * (band > 20) if at < 26 else 1 - (band > 20))
                for at in range(40)
                for band in (20, 21)
            ],
            Finding.CEILING,
            0,
        ),
        # And one brought it.
        (
            [
                Cell((), at, band, 5, 5 - 4 * (band > 20 and at > 13))
                for at in range(40)
                for band in (20, 21)
            ],
            Finding.CEILING,
            0,
        ),
        # The middle sizes fail, larger ones do not: another reason than the size.
        (
            [
                Cell((), at, band, 5, 5 - 4 * (band in (21, 22)))
                for at in range(40)
                for band in (19, 20, 21, 22, 23, 24, 25)
            ],
            Finding.RECOVERS,
            0,
        ),
    ],
)
def test_who_finds_no_ceiling_says_why(cells: list[Cell], finding: Finding, missing: int) -> None:
    slices = [cell._replace(band=middle_slice(cell.band)) for cell in cells]

    found = find_safe_input(sized(slices))

    assert (found.finding, found.missing) == (finding, missing)
    assert (found.ceiling is not None) is (finding is Finding.CEILING)


def test_bands_follow_each_other_without_a_gap() -> None:
    assert [size_band(size) for size in (0, 1, 2, 3, 4, 5, 6, 8, 12, 16)] == [
        0, 0, 2, 3, 4, 4, 5, 6, 7, 8,
    ]  # fmt: skip
    for band in (2, 9, 20, 33, 64):
        assert size_band(band_start(band)) == size_band(band_end(band)) == band
        assert band_of_slice(middle_slice(band)) == band
    for size in (0, 1, 3, 5, 7, 8, 9, 4095, 4096, 6143, 6144, 10**12):
        assert band_of_slice(size_slice(size)) == size_band(size)
    assert [size_slice(size) for size in (8, 9, 15, 16, 18)] == [24, 25, 31, 32, 33]


def test_one_walk_gives_the_falls_of_every_place() -> None:
    blocks = blocks_of(fleets.cells_of(fleets.talking_cliff(Random("walk"), 300).calls))

    for place, fall in falls_at(blocks, range(60, 140)).items():
        assert fall == fall_between(blocks, small=range(place + 1), large=range(place + 1, 256))


def test_an_outage_while_large_prompts_are_sent_is_no_fall() -> None:
    before = [Cell(("one",), at, 20, 6, 6) for at in range(20)]
    during = [Cell(("one",), at, 24, 6, 0) for at in range(20, 40)]

    fall = fall_between(blocks_of([*before, *during]), small=range(21), large=range(21, 30))

    assert fall.points is None


def test_rollups_by_bands_and_by_slices_tell_it_together() -> None:
    """What was counted before there were slices stays in rollups as it was."""
    told = []
    for at in range(40):
        kind, of = ("zt", size_band) if at < 20 else ("xt", size_slice)
        counts = {"n": 10, "j": 10, "j+": 6}
        counts |= {f"{kind}:{of(5_000)}": 5, f"{kind}+:{of(5_000)}": 5}
        counts |= {f"{kind}:{of(7_000)}": 5, f"{kind}+:{of(7_000)}": 1}
        told.append(Told(at, "", "", "chat", "", counts))

    (found,) = learn(model_key="m", told=told, budget=make_budget(), since=None, until=None)

    assert (found.input.calls, found.input.ceiling) == (400, 6_143)
    assert found.above is not None
    assert (found.above.calls, found.above.clean) == (200, 40)
