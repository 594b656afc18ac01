"""Where a conversation's context was given a fresh start, as a cliff in its fill curve.

A cliff goes down from the last prompt of a round to the first of the next; a round that was opened
and has no call yet ends in the open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from helmdash.queries.conversations import CurvePoint, RoundView

# A label such as "clear, round 12" at the size of the drawing's type (px).
_LABEL_WIDTH = 92.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """One fresh start. `path` is empty where usage is unknown on either side.

    anchor: on which side of the line the label stands. open_at: where the round without a call is.
    """

    at: float
    label: str
    label_at: float
    anchor: str
    is_clear: bool
    path: str
    sign: str
    text: str
    open_at: float | None = None


def cliffs(
    points: Sequence[CurvePoint],
    rounds: Sequence[RoundView],
    *,
    x: Callable[[float], float],
    y: Callable[[float], float],
    top: float,
    bottom: float,
    right: float,
) -> tuple[Cliff, ...]:
    """Every fresh start among the points that are drawn, and one after the last of them."""
    opened_by = {each.number: each.opened_by for each in rounds}
    found: list[Cliff] = []
    borders = [(a, b) for a, b in pairwise(points) if a.round_number != b.round_number]
    for a, b in borders:
        at = x((a.generation + b.generation) / 2)
        path = ""
        if a.prompt_tokens is not None and b.prompt_tokens is not None:
            end = f"{x(b.generation)},{y(b.prompt_tokens)}"
            path = f"M{x(a.generation)},{y(a.prompt_tokens)} H{at} V{y(b.prompt_tokens)} L{end}"
        word = opened_by.get(b.round_number, "")
        found.append(_cliff(at, word, b.round_number, path, top=top, right=right, text=_text(a, b)))
    newest = max(opened_by, default=0)
    if points and newest > points[-1].round_number:
        found.append(_open(points[-1], newest, opened_by[newest], x, y, top, bottom, right))
    return _thinned(found)


def _open(
    latest: CurvePoint,
    number: int,
    opener: str,
    x: Callable[[float], float],
    y: Callable[[float], float],
    top: float,
    bottom: float,
    right: float,
) -> Cliff:
    at, end = x(latest.generation + 0.5), x(latest.generation + 1)
    path = ""
    if latest.prompt_tokens is not None:
        path = f"M{x(latest.generation)},{y(latest.prompt_tokens)} H{at} V{bottom} H{end}"
    text = f"Round {number} is open and has no call yet"
    made = _cliff(at, opener, number, path, top=top, right=right, text=text)
    return replace(made, open_at=end)


def _cliff(
    at: float, word: str, number: int, path: str, *, top: float, right: float, text: str
) -> Cliff:
    is_before = at + _LABEL_WIDTH > right
    return Cliff(
        at=at,
        label=f"{word}, round {number}" if word else f"round {number}",
        label_at=at - 6 if is_before else at + 6,
        anchor="end" if is_before else "start",
        is_clear=word == "clear",
        path=path,
        # A filled arrow: unlike the sign of a Trim, which is an outline.
        sign=f"M{at - 1.5:.1f},{top - 11} h3 v5 h3.5 l-5,6 l-5,-6 h3.5 z",
        text=text,
    )


def _text(before: CurvePoint, after: CurvePoint) -> str:
    return (
        f"Round {after.round_number} begins with generation {after.generation}: "
        f"{_tokens(before)} before, {_tokens(after)} after"
    )


def _tokens(point: CurvePoint) -> str:
    return "unknown" if point.prompt_tokens is None else f"{point.prompt_tokens:,} tokens"


def _thinned(found: Sequence[Cliff]) -> tuple[Cliff, ...]:
    """Where fresh starts stand close together, only as many labels as can be read."""
    kept: list[Cliff] = []
    edge = float("-inf")
    for each in found:
        start = each.label_at - (_LABEL_WIDTH if each.anchor == "end" else 0)
        has_room = start >= edge
        if has_room:
            edge = start + _LABEL_WIDTH
        kept.append(each if has_room else replace(each, label=""))
    return tuple(kept)
