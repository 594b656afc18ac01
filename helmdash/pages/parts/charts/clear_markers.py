"""Where a conversation's context was given a fresh start, as a marker in its fill curve.

A marker goes down from the last prompt of a round to the first of the next; a round that was opened
and has no call yet ends in the open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CurvePoint

NO_NOTES: Final[Mapping[int, str]] = MappingProxyType({})
# Shorter than the words of the API.
_LABELS = {"client_compaction": "compaction"}
# At the size of the drawing's type (px): a letter of "compaction, round 12" on the average, and how
# far a label stands from its own line and from the next one.
_LETTER_WIDTH, _GAP, _CLEAR = 6.0, 4.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearMarker:
    """One fresh start. `path` is empty where usage is unknown on either side.

    anchor: on which side of the line the label stands. number: of the round that begins. open_at:
    where the round without a call is.
    """

    at: float
    label: str
    label_at: float
    anchor: str
    is_clear: bool
    path: str
    sign: str
    text: str
    number: int
    open_at: float | None = None


def clear_markers(
    points: Sequence[CurvePoint],
    rounds: Sequence[RoundView],
    *,
    x: Callable[[float], float],
    y: Callable[[float], float],
    top: float,
    bottom: float,
    right: float,
    notes: Mapping[int, str] = NO_NOTES,
) -> tuple[ClearMarker, ...]:
    """Every fresh start among the points that are drawn, and one after the last of them. notes:
    what else is said of some, by the number of the round that begins."""
    opened_by = {each.number: each.opened_by for each in rounds}
    found: list[ClearMarker] = []
    borders = [(a, b) for a, b in pairwise(points) if a.round_number != b.round_number]
    for a, b in borders:
        at = x((a.generation + b.generation) / 2)
        path = ""
        if (
            a.is_trusted
            and b.is_trusted
            and a.prompt_tokens is not None
            and b.prompt_tokens is not None
        ):
            end = f"{x(b.generation)},{y(b.prompt_tokens)}"
            path = f"M{x(a.generation)},{y(a.prompt_tokens)} H{at} V{y(b.prompt_tokens)} L{end}"
        word = opened_by.get(b.round_number, "")
        note = notes.get(b.round_number)
        text = f"{_text(a, b)}; {note}" if note else _text(a, b)
        found.append(_marker(at, word, b.round_number, path, top=top, text=text))
    newest = max(opened_by, default=0)
    if points and newest > points[-1].round_number:
        found.append(_open(points[-1], newest, opened_by[newest], x, y, top, bottom))
    left = x(points[0].generation) if points else 0.0
    return _labeled(found, left=left, right=right)


def _open(
    latest: CurvePoint,
    number: int,
    opener: str,
    x: Callable[[float], float],
    y: Callable[[float], float],
    top: float,
    bottom: float,
) -> ClearMarker:
    at, end = x(latest.generation + 0.5), x(latest.generation + 1)
    path = ""
    if latest.is_trusted and latest.prompt_tokens is not None:
        path = f"M{x(latest.generation)},{y(latest.prompt_tokens)} H{at} V{bottom} H{end}"
    text = f"Round {number} is open and has no call yet"
    made = _marker(at, opener, number, path, top=top, text=text)
    return replace(made, open_at=end)


def _marker(at: float, word: str, number: int, path: str, *, top: float, text: str) -> ClearMarker:
    return ClearMarker(
        at=at,
        label=f"{_LABELS.get(word, word)}, round {number}" if word else f"round {number}",
        label_at=at + _GAP,
        anchor="start",
        number=number,
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
    if point.prompt_tokens is None:
        return "unknown"
    doubt = "" if point.is_trusted else " reported and not trusted"
    return f"{point.prompt_tokens:,} tokens{doubt}"


def _labeled(found: Sequence[ClearMarker], *, left: float, right: float) -> tuple[ClearMarker, ...]:
    """Each with its name where no label is crossed by a line or by another label; else each with
    the bare number of its round, as far as there is room."""
    named = _placed(found, left=left, right=right)
    if all(each.label for each in named):
        return named
    bare = [replace(each, label=str(each.number)) for each in found]
    return _placed(bare, left=left, right=right)


def _placed(found: Sequence[ClearMarker], *, left: float, right: float) -> tuple[ClearMarker, ...]:
    """Labels on the right of their line, else on its left, else none."""
    kept: list[ClearMarker] = []
    taken = left
    ends = [*(each.at for each in found), right][1:]
    for each, after in zip(found, ends, strict=True):
        reach = _GAP + len(each.label) * _LETTER_WIDTH + _CLEAR
        if each.at + reach <= after:
            kept.append(each)
            taken = each.at + reach
        else:
            has_room = each.at - reach >= taken
            label = each.label if has_room else ""
            kept.append(replace(each, label=label, label_at=each.at - _GAP, anchor="end"))
            taken = each.at
    return tuple(kept)
