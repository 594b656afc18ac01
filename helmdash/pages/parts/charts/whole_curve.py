"""The whole of a long conversation as a strip below its curve: which part of it is shown, and links
to the others. Dragging over it looks closer (`static/js/time.js`).

Across in percent, as bars over time are; the line in units of its own, which the strip stretches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CURVE_POINTS, WholePoint

# The units of the line: as many across as there are places to tell apart on a wide screen.
ACROSS: Final = 1000
TALL: Final = 40
# Links of a finger's width on a narrow screen; no fewer generations than are worth a look.
_MOST_STRETCHES: Final = 12
_LEAST_GENERATIONS: Final = 10
# More fresh starts than this are a pattern and no marks.
_MOST_ROUNDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Generations that a link leads to; at, width: percent."""

    first: int
    last: int
    at: float
    width: float
    is_shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCurve:
    """The strip. shown_at, shown_width: what the curve above shows (percent); end: the generation
    after the last."""

    line: str
    stretches: tuple[Stretch, ...]
    rounds: tuple[float, ...]
    shown_at: float
    shown_width: float
    end: int
    step: int
    across: int = ACROSS
    tall: int = TALL


def whole_curve(
    points: Sequence[WholePoint], rounds: Sequence[RoundView], *, shown: tuple[int, int]
) -> WholeCurve | None:
    """Lay out the points of a whole conversation; None where none of them tells its tokens.

    shown: the first and the last generation of the curve above.
    """
    if all(point.prompt_tokens is None for point in points):
        return None
    last = points[-1].generation
    share = 100 / last
    most = max((point.prompt_tokens or 0 for point in points), default=0) or 1
    size = max(-(-last // _MOST_STRETCHES), _LEAST_GENERATIONS)
    starts = [each.first_generation for each in rounds if 1 < each.first_generation <= last]
    return WholeCurve(
        line=_line(points, most, last),
        stretches=tuple(
            _stretch(first, min(first + size - 1, last), share, shown)
            for first in range(1, last + 1, size)
        ),
        rounds=tuple(round((start - 1) * share, 2) for start in starts[-_MOST_ROUNDS:]),
        shown_at=round((shown[0] - 1) * share, 2),
        shown_width=round((shown[1] - shown[0] + 1) * share, 2),
        end=last + 1,
        step=points[1].generation - points[0].generation if len(points) > 1 else 1,
    )


def _stretch(first: int, last: int, share: float, shown: tuple[int, int]) -> Stretch:
    # The curve takes no more: of a longer stretch the newest.
    first_shown = max(first, last - CURVE_POINTS + 1)
    return Stretch(
        first=first_shown,
        last=last,
        at=round((first - 1) * share, 2),
        width=round((last - first + 1) * share, 2),
        is_shown=(first_shown, last) == shown,
    )


def _line(points: Sequence[WholePoint], most: int, last: int) -> str:
    """A path that is broken where nothing is known."""
    path: list[str] = []
    is_on = False
    for point in points:
        if point.prompt_tokens is None:
            is_on = False
            continue
        x = ACROSS * (point.generation - 0.5) / last
        y = TALL - (TALL - 2) * point.prompt_tokens / most
        path.append(f"{'L' if is_on else 'M'}{x:.1f},{y:.1f}")
        is_on = True
    return " ".join(path)
