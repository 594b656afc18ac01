"""What left the context of a conversation: at its fresh starts, and by Trims.

Only figures that were recorded: what a client dropped between two calls without telling is not
guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from django.db.models import Count, F, Max

from helmdash.records.models import Conversation, Guidance, Round
from helmdash.records.querysets import calls_of

# Older ones are on the calls page; a conversation of 600 generations clears some dozens of times.
MOST_STARTS: Final = 50
MOST_TRIMS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A call beside a fresh start. None: not reported."""

    prompt_tokens: int | None
    messages: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshStart:
    """A round that ended: its calls, and the prompts before and after its end.

    after: None while the new round has no call. carried: user texts that went on into the new
    round; None where nobody told.
    """

    round_number: int
    opened_by: str
    at: datetime
    first_generation: int
    latest_generation: int
    before: Edge | None
    after: Edge | None
    carried: int | None

    @property
    def generations(self) -> int:
        """How many calls the round had that ended here."""
        return self.latest_generation - self.first_generation + 1

    @property
    def tokens_gone(self) -> int | None:
        """What the prompt lost; None where a side is unknown or it did not become smaller."""
        before, after = self.before, self.after
        if before is None or after is None:
            return None
        if before.prompt_tokens is None or after.prompt_tokens is None:
            return None
        gone = before.prompt_tokens - after.prompt_tokens
        return gone if gone > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedCall:
    """A call whose prompt was made to fit (bytes)."""

    generation: int
    call_id: str
    before_bytes: int
    after_bytes: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedContext:
    """Newest first; `clears` and `compactions` count all there are."""

    starts: tuple[FreshStart, ...]
    trims: tuple[TrimmedCall, ...]
    clears: int
    compactions: int


def dropped_context(*, project_id: int, conversation: str) -> DroppedContext:
    """Fresh starts with what went, and the newest Trims. Four queries."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation).first()
    if row is None:
        return DroppedContext(starts=(), trims=(), clears=0, compactions=0)
    rows = Round.objects.filter(project_id=project_id, conversation=row)
    rounds = [_Span(*row) for row in rows.order_by("number").values_list(*_Span._fields)]
    shown = rounds[-(MOST_STARTS + 1) :]
    edges = _edges(row, shown)
    starts = [_start(ended, begun, edges) for ended, begun in pairwise(shown)]
    openers = [each.opened_by for each in rounds]
    return DroppedContext(
        starts=tuple(reversed(starts)),
        trims=_trims(row),
        clears=openers.count("clear"),
        compactions=openers.count("compaction"),
    )


def care_mark(*, project_id: int, conversation: str) -> str:
    """What a live page of a conversation depends on besides its calls. Two small queries."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation)
    found = row.values_list("id", "round_number").first()
    if found is None:
        return ""
    told = Guidance.objects.filter(project_id=project_id, conversation_id=found[0])
    marks = told.aggregate(newest=Max("generation"), followed=Count("followed_at"))
    return f"{found[1]}:{marks['newest']}:{marks['followed']}"


class _Span(NamedTuple):
    """The columns of a round, in the order they are asked for."""

    number: int
    opened_by: str
    started_at: datetime
    first_generation: int
    latest_generation: int
    restart: object


def _edges(row: Conversation, rounds: Sequence[_Span]) -> dict[int, Edge]:
    """The first and the last call of each round, by generation."""
    ends = {
        (each.number, generation)
        for each in rounds
        for generation in (each.first_generation, each.latest_generation)
    }
    calls = calls_of(row).filter(generation__in={generation for _, generation in ends})
    figures = calls.values_list("generation", "round_number", "prompt_tokens", "sent_messages")
    return {
        generation: Edge(prompt_tokens=prompt, messages=messages)
        for generation, number, prompt, messages in figures
        # A late call of the round before may stand where a round without a call will begin.
        if generation is not None and (number, generation) in ends
    }


def _start(ended: _Span, begun: _Span, edges: Mapping[int, Edge]) -> FreshStart:
    return FreshStart(
        round_number=begun.number,
        opened_by=begun.opened_by,
        at=begun.started_at,
        first_generation=ended.first_generation,
        latest_generation=ended.latest_generation,
        before=edges.get(ended.latest_generation),
        after=edges.get(begun.first_generation),
        carried=_carried(begun.restart),
    )


def _carried(restart: object) -> int | None:
    if not isinstance(restart, Mapping):
        return None
    carried = restart.get("carried")
    return len(carried) if isinstance(carried, list) else None


def _trims(row: Conversation) -> tuple[TrimmedCall, ...]:
    calls = calls_of(row).filter(
        generation__isnull=False, trim_after_bytes__lt=F("trim_before_bytes")
    )
    shown = calls.order_by("-generation").values_list(
        "generation", "name", "trim_before_bytes", "trim_after_bytes", "started_at"
    )
    return tuple(
        TrimmedCall(
            generation=generation or 0,
            call_id=name,
            before_bytes=before or 0,
            after_bytes=after or 0,
            at=at,
        )
        for generation, name, before, after, at in shown[:MOST_TRIMS]
    )
