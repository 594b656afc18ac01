"""What a Trim's receipt says: its steps as a waterfall, labels that saved no bytes in words.

A receipt may have been written by another version: what is missing or of another form is left
out or shown as it is, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.catalog.trim import LOW_CONFIDENCE

_FILTER = re.compile(r"llm_filter\(picks=(\d+),kept=(\d+)\)")
_OVER = re.compile(r"still_over_budget\((\d+)>(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A label of `dropped` that is no step. `words` is "" for one that is not known here."""

    label: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A bar of the waterfall, in percent of its width.

    label: "" for what there was and what is left, which begin at 0. bytes: what it stands for, of
    a step the change. entries: those that a step went over; None: it is no step.
    """

    label: str
    start: float
    width: float
    bytes: int
    entries: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """What there was, what each step took, what is left; room: where the room ends, in percent;
    None: it is larger than the drawing, or has no end."""

    before: Fall
    steps: tuple[Fall, ...]
    after: Fall
    room: float | None


def waterfall(trim: object) -> Waterfall | None:
    """The steps of a receipt from before to after; None where it does not tell its sizes."""
    if not isinstance(trim, Mapping):
        return None
    before, after = trim.get("before_bytes"), trim.get("after_bytes")
    if not isinstance(before, int) or not isinstance(after, int):
        return None
    limit = trim.get("limit_bytes")
    scale = max(before, after, 1)

    def share(size: int) -> float:
        return round(100 * size / scale, 1)

    steps, left = [], before
    for each in _list(trim.get("steps")):
        if not isinstance(each, Mapping):
            continue
        saved, entries = each.get("bytes_saved"), each.get("entries")
        if not isinstance(saved, int) or not isinstance(entries, int):
            continue
        left -= saved
        # A step may cost some bytes, what it puts in the place of what it took.
        edge = min(left, left + saved)
        steps.append(
            Fall(
                label=str(each.get("label", "")),
                start=share(edge),
                width=share(abs(saved)),
                bytes=-saved,
                entries=entries,
            )
        )
    return Waterfall(
        before=Fall(label="", start=0.0, width=share(before), bytes=before),
        steps=tuple(steps),
        after=Fall(label="", start=0.0, width=share(after), bytes=after),
        room=share(limit) if isinstance(limit, int) and limit <= scale else None,
    )


def flags(trim: object) -> tuple[Flag, ...]:
    """The labels of a receipt that are not among its steps, in their order."""
    if not isinstance(trim, Mapping):
        return ()
    steps = {step.get("label") for step in _list(trim.get("steps")) if isinstance(step, Mapping)}
    labels = [each for each in _list(trim.get("dropped")) if isinstance(each, str)]
    return tuple(Flag(label=each, words=_words(each)) for each in labels if each not in steps)


def _words(label: str) -> str:
    if label == LOW_CONFIDENCE:
        return "The ranking was in doubt"
    if told := _FILTER.fullmatch(label):
        picks, kept = int(told[1]), int(told[2])
        return f"The filter picked {picks:,}, {kept:,} of them shown"
    if told := _OVER.fullmatch(label):
        return f"Still too large: {int(told[1]):,} bytes, with room for {int(told[2]):,}"
    return ""


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
