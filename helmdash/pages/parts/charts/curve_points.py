"""The points of a fill curve as one short text, which `static/js/curve.js` reads.

A point is a word: what differs from the point before (`@generation:` where one is missing between
them, `~limit:` where that is another), its prompt tokens (`-`: not reported), `/` and the place of
its level among LEVEL_WORDS, `t` where it was trimmed, `?` where its count is not trusted, and
`!cause` where the call failed. So 600 points are some kilobytes, where a link with its title for
each was a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.core.budgets.levels import LEVELS
from helmdash.queries.conversations.curve import CurvePoint

LEVEL_WORDS = " ".join(level.value for level in LEVELS)
_PLACES = {level: place for place, level in enumerate(LEVELS)}


def encoded(points: Iterable[CurvePoint]) -> str:
    """The points, oldest first, with a space between them."""
    found: list[str] = []
    generation: int | None = None
    limit: int | None = None
    for point in points:
        apart = "" if generation == point.generation - 1 else f"@{point.generation}:"
        other = "" if limit == point.limit_tokens else f"~{point.limit_tokens or 0}:"
        found.append(apart + other + _word(point))
        generation, limit = point.generation, point.limit_tokens
    return " ".join(found)


def _word(point: CurvePoint) -> str:
    tokens = "-" if point.prompt_tokens is None else str(point.prompt_tokens)
    flags = "t" * point.is_trimmed + "?" * (
        point.prompt_tokens is not None and not point.is_trusted
    )
    cause = f"!{point.cause}" if point.cause else ""
    return f"{tokens}/{_PLACES[point.level]}{flags}{cause}"
