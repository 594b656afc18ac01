"""Cells of sizes: by bands, by which a fall is found, and by slices, which tell its shape.

Nearly every question is one of bands. A million calls have a third as many cells by bands as by
slices, and ten million fewer still; so those by slices are made only where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from helmdash.core.evidence.stratified import Cell
from helmdash.core.rollups.bands import band_of_slice


@dataclass(frozen=True, slots=True)
class SizedCells:
    """The same calls twice, in any order. make_slices: gives the cells by slices."""

    by_band: Sequence[Cell]
    make_slices: Callable[[], Sequence[Cell]]

    def after(self, at: int) -> SizedCells:
        """Those of later stretches of time."""
        return SizedCells(
            [cell for cell in self.by_band if cell.at > at],
            lambda: [cell for cell in self.make_slices() if cell.at > at],
        )

    def split(self, place: int) -> dict[str, SizedCells]:
        """Them by what stands at a place of their stratum."""
        found: dict[str, list[Cell]] = {}
        for cell in self.by_band:
            found.setdefault(cell.stratum[place], []).append(cell)

        def slices_of(word: str) -> Callable[[], Sequence[Cell]]:
            return lambda: [cell for cell in self.make_slices() if cell.stratum[place] == word]

        return {word: SizedCells(cells, slices_of(word)) for word, cells in found.items()}


def joined(parts: Sequence[SizedCells]) -> SizedCells:
    """All of them together."""
    return SizedCells(
        [cell for part in parts for cell in part.by_band],
        lambda: [cell for part in parts for cell in part.make_slices()],
    )


def sized(slices: Iterable[Cell]) -> SizedCells:
    """Cells by slices, with those by bands that they come to."""
    given = list(slices)
    found: dict[tuple[tuple[str, ...], int, int], tuple[int, int]] = {}
    for stratum, at, number, calls, clean in given:
        place = (stratum, at, band_of_slice(number))
        before = found.get(place, (0, 0))
        found[place] = before[0] + calls, before[1] + clean
    return SizedCells([Cell(*place, *told) for place, told in found.items()], lambda: given)
