"""Small drawings: the signs of the levels, the stacked bar, the numbers of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from helmdash.core.budgets.levels import Glyph, Level

_UNITS: Final = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
# From here on three digits of the next smaller unit would be four: 999,500 is 1M.
_ROUNDS_UP: Final = 0.9995


def outline(glyph: Glyph, x: float, y: float, r: float = 4.0) -> str:
    """The path of a glyph around a centre (px)."""
    match glyph:
        case Glyph.TRIANGLE:
            return f"M{x},{y - r * 1.15} l{r * 1.2},{r * 2.1} h{-r * 2.4} z"
        case Glyph.DIAMOND:
            d = round(r * 1.3, 2)
            return f"M{x},{y - d} l{d},{d} l{-d},{d} l{-d},{-d} z"
        case Glyph.DISC | Glyph.RING:
            return f"M{x - r},{y} a{r},{r} 0 1,0 {2 * r},0 a{r},{r} 0 1,0 {-2 * r},0 z"
        case _:
            assert_never(glyph)


def short(value: float) -> str:
    """A round number for an axis, in three digits: 96k, 1.5M, 6.39G."""
    for size, unit in _UNITS:
        if value >= size * _ROUNDS_UP:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


def shares(
    counts: Sequence[tuple[Level, int]], width: float = 100.0
) -> tuple[tuple[Level, float, float], ...]:
    """A stacked bar: level, start and length of each part that is not empty."""
    total = sum(count for _, count in counts)
    parts: list[tuple[Level, float, float]] = []
    at = 0.0
    for level, count in counts:
        if count:
            length = width * count / total
            parts.append((level, round(at, 2), round(length, 2)))
            at += length
    return tuple(parts)
