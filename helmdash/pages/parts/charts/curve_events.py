"""What happened to a conversation's context, generation by generation: what its curve marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from helmdash.queries.conversations.conversations import RoundView
from helmdash.queries.conversations.curve import CurvePoint
from helmdash.queries.marks import Mark

# A client that drops its model's thoughts makes a prompt some percent shorter: no more than this
# says that something left the context.
_LEAST_SHARE = 0.1
_LEAST_TOKENS = 1_000
_OPENERS = {"client_compaction": "the client's compaction"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A prompt that became shorter within a round, and nothing told why (tokens)."""

    generation: int
    call_id: str
    before: int
    after: int
    at: datetime

    @property
    def gone(self) -> int:
        """What the prompt lost."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveEvent:
    """One mark of the curve in words. call_id: None where it is between two calls; `generation` is
    the one before it then."""

    generation: int
    call_id: str | None
    text: str
    at: datetime


def unexplained_falls(points: Sequence[CurvePoint]) -> tuple[Fall, ...]:
    """Falls within a round that no Trim and no other model explains, oldest first.

    Another model counts tokens in another way. Counts that are not trusted say nothing.
    """
    found: list[Fall] = []
    before: CurvePoint | None = None
    for point in points:
        if not point.is_trusted or point.prompt_tokens is None:
            continue
        if before is not None and _is_unexplained(before, point):
            found.append(
                Fall(
                    generation=point.generation,
                    call_id=point.call_id,
                    before=before.prompt_tokens or 0,
                    after=point.prompt_tokens,
                    at=point.at,
                )
            )
        before = point
    return tuple(found)


def events(
    points: Sequence[CurvePoint], rounds: Sequence[RoundView], edits: Iterable[Mark] = ()
) -> tuple[CurveEvent, ...]:
    """Failures, fresh starts, Trims and unexplained falls among the points, and what was between
    them (`edits` of the budget, and what the client told), newest first."""
    openers = {each.first_generation: each for each in rounds if each.opened_by}
    falls = {each.generation: each for each in unexplained_falls(points)}
    found = [
        CurveEvent(
            generation=point.generation, call_id=point.call_id, text="; ".join(told), at=point.at
        )
        for point in reversed(points)
        if (told := list(_told(point, openers, falls)))
    ]
    between = [
        CurveEvent(
            generation=generation_before(edit.at, points), call_id=None, text=edit.text, at=edit.at
        )
        for edit in edits
    ]
    return tuple(sorted([*found, *between], key=lambda event: event.at, reverse=True))


def generation_before(at: datetime, points: Sequence[CurvePoint]) -> int:
    """The newest generation that began at a moment or before it; that before the first where none
    did."""
    earlier = [each.generation for each in points if each.at <= at and not each.is_history]
    return max(earlier, default=points[0].generation - 1 if points else 0)


def _is_unexplained(before: CurvePoint, point: CurvePoint) -> bool:
    was, now = before.prompt_tokens or 0, point.prompt_tokens or 0
    is_fall = was - now > max(was * _LEAST_SHARE, _LEAST_TOKENS)
    # What is history was not sent behind what is numbered before it.
    same = attrgetter("round_number", "model", "is_history")
    return is_fall and same(before) == same(point) and not point.is_trimmed


def _told(
    point: CurvePoint, openers: Mapping[int, RoundView], falls: Mapping[int, Fall]
) -> Iterator[str]:
    opened = openers.get(point.generation)
    if opened is not None:
        by = _OPENERS.get(opened.opened_by, opened.opened_by)
        yield f"round {opened.number} begins, opened by {by}"
    if point.is_trimmed:
        yield "the prompt was trimmed"
    fall = falls.get(point.generation)
    if fall is not None:
        yield f"{fall.gone:,} tokens fewer than the call before, and nothing told why"
    if point.cause:
        yield f"failed: {point.cause}"
