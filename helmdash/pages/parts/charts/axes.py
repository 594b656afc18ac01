"""The axes of drawings over generations: where a generation stands, and which numbers are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helmdash.queries.conversations.curve import CurvePoint

# Room beside a drawing (px): for the numbers of its axis, for the names of its lines where it is
# wide enough to have any, and for the generations below.
_AXIS, _NAMES, _EDGE, _FOOT = 46.0, 112.0, 6.0, 22.0
_ROOMY = 600
# Left free within the axes, so that the signs of the first and the last call lie inside.
_INSET = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A drawing of this width and height, and what lies within its axes (px). top: left free above
    them."""

    width: int
    height: int
    top: float

    @property
    def left(self) -> float:
        """Where the axis of values stands."""
        return _AXIS

    @property
    def right(self) -> float:
        """Where the drawing ends, and the names of lines begin."""
        return self.width - (_NAMES if self.width > _ROOMY else _EDGE)

    @property
    def bottom(self) -> float:
        """Where the axis of generations lies."""
        return self.height - _FOOT

    @property
    def across(self) -> float:
        """The width within the axes."""
        return self.right - self.left

    @property
    def tall(self) -> float:
        """The height within the axes."""
        return self.bottom - self.top

    @property
    def most_ticks(self) -> int:
        """How many generations can be told below without one touching the next."""
        return 10 if self.width > _ROOMY else 4

    def y_scale(self, y_max: float) -> Callable[[float], float]:
        """The place of a value, of which `y_max` stands at the top."""
        return lambda value: round(self.bottom - self.tall * value / y_max, 1)


def x_scale(
    points: Sequence[CurvePoint], left: float, right: float, *, extra: int
) -> Callable[[float], float]:
    """The place (px) of a generation. extra: generations left free at the end."""
    first = points[0].generation if points else 0
    step = x_step(points, left, right, extra=extra)
    begin = left + _INSET if step else (left + right) / 2

    def x(generation: float) -> float:
        return round(begin + step * (generation - first), 1)

    return x


def x_step(points: Sequence[CurvePoint], left: float, right: float, *, extra: int) -> float:
    """How far it is from one generation to the next (px); 0 where there is but one."""
    span = (points[-1].generation - points[0].generation + extra) if points else 0
    return (right - left - 2 * _INSET) / span if span else 0.0


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
    return tuple(Tick(at=x(p.generation), label=f"{p.generation:,}") for p in picked)
