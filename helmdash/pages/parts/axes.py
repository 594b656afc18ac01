"""The axes of drawings over generations: where a generation stands, and which numbers are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helmdash.queries.conversations.curve import CurvePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


def x_scale(
    points: Sequence[CurvePoint], left: float, right: float, *, extra: int
) -> Callable[[float], float]:
    """The place (px) of a generation. extra: generations left free at the end."""
    first = points[0].generation if points else 0
    span = (points[-1].generation - first + extra) if points else 0
    inset = 8.0
    width = right - left - 2 * inset

    def x(generation: float) -> float:
        if not span:
            return round(left + inset + width / 2, 1)
        return round(left + inset + width * (generation - first) / span, 1)

    return x


def ticks(y_max: float) -> list[float]:
    """Three to five round values from 0 upwards."""
    raw = y_max / 4
    magnitude: float = 10 ** (len(str(int(raw))) - 1) if raw >= 1 else 1.0
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    return [index * step for index in range(int(y_max // step) + 1)]


def x_ticks(
    points: Sequence[CurvePoint], x: Callable[[float], float], *, most: int
) -> tuple[Tick, ...]:
    """Some generations with their numbers, `most` at most."""
    if not points:
        return ()
    step = max(1, -(-len(points) // most))
    picked = list(points[::step])
    return tuple(Tick(at=x(p.generation), label=str(p.generation)) for p in picked)
