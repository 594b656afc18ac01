"""Levels: the light of a call or conversation, and all that follows from a level alone.

One row for each level. A new level needs a row here, the line that leads to it, what care does at
it (core.care.remediation), its colour (static/css), and a migration for the stored words; mypy
names each place that matches a level and does not know it. Pages, API and admin ask this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, assert_never


class Level(StrEnum):
    """How full a call's context is."""

    # In the order of legends.

    HEALTHY = "healthy"
    CAUTION = "caution"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


class Glyph(StrEnum):
    """The outline that stands for a level, so that colour never speaks alone."""

    DISC = "disc"
    TRIANGLE = "triangle"
    DIAMOND = "diamond"
    RING = "ring"  # drawn dashed: nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRow:
    """What follows from a level alone.

    severity: how much it needs somebody, 0 the least; stored with every conversation. position:
    its place among the counters, 0 the first. is_held: care holds it, and somebody should look.
    """

    level: Level
    severity: int
    position: int
    word: str
    glyph: Glyph
    css_class: str
    is_held: bool
    meaning: str


class HasLines(Protocol):
    """Whatever a prompt is judged by; tokens, None: no such line."""

    @property
    def optimal_max_tokens(self) -> int | None: ...

    @property
    def critical_max_tokens(self) -> int | None: ...


def line_of(level: Level, lines: HasLines) -> int | None:
    """The prompt tokens above which a call has the level; None: no count leads to it."""
    match level:
        case Level.HEALTHY:
            return 0
        case Level.CAUTION:
            return lines.optimal_max_tokens
        case Level.CRITICAL:
            return lines.critical_max_tokens
        case Level.UNKNOWN:
            return None
        case _:
            assert_never(level)


# A new level without a row fails a test; nothing here may fail at import, else mypy, which imports
# the models, stops there and names none of the places that match a level.
LEVELS: Final[Mapping[Level, LevelRow]] = {
    Level.HEALTHY: LevelRow(
        level=Level.HEALTHY,
        severity=0,
        position=2,
        word="Healthy",
        glyph=Glyph.DISC,
        css_class="is-healthy",
        is_held=False,
        meaning="The prompt is at or below the caution line.",
    ),
    Level.CAUTION: LevelRow(
        level=Level.CAUTION,
        severity=2,
        position=1,
        word="Caution",
        glyph=Glyph.TRIANGLE,
        css_class="is-caution",
        is_held=True,
        meaning="Above the caution line, 100,000 tokens, or 70 % of a limit below 128,000, "
        "unless the budget says otherwise: models lose track of long prompts before they "
        "are full.",
    ),
    Level.CRITICAL: LevelRow(
        level=Level.CRITICAL,
        severity=3,
        position=0,
        word="Critical",
        glyph=Glyph.DIAMOND,
        css_class="is-critical",
        is_held=True,
        meaning="Above the critical line, 90 % of the limit unless the budget says otherwise.",
    ),
    Level.UNKNOWN: LevelRow(
        level=Level.UNKNOWN,
        severity=1,
        position=3,
        word="Unknown",
        glyph=Glyph.RING,
        css_class="is-unknown",
        is_held=False,
        meaning="No usage was reported, no limit is known, or the reported count is not "
        "trusted. Never counted as healthy, never shown as 0.",
    ),
}
# The most severe first: a call has the first level whose line it is above.
BY_SEVERITY: Final = tuple(sorted(LEVELS, key=lambda level: -LEVELS[level].severity))
# Those that care holds, and that somebody should look at; the most severe first.
HELD: Final = tuple(level for level in BY_SEVERITY if LEVELS[level].is_held)
