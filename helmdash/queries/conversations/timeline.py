"""The timeline of a conversation: its calls, clears, compactions and changes of model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from helmdash.answers import JsonName, Words
from helmdash.core.agents import contexts
from helmdash.core.budgets.levels import Level
from helmdash.core.conversations import chains
from helmdash.queries.paging import Page, decode_number_cursor, encode_cursor
from helmdash.records.models import Call, Conversation, Round
from helmdash.records.querysets import calls_of

_COMPACTED = frozenset({chains.COMPACTED, contexts.COMPACTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """One event of a conversation. A clear belongs to no call: it says what it comes before.

    That call, the first of the round it opens, may still be to come.
    """

    generation: int
    round_number: Annotated[int, JsonName("round")]
    at: datetime
    event: Annotated[str, Words(("call", "clear", "compaction", "model_change"))]
    call_id: str | None
    model: str | None
    prompt_tokens: int | None
    level: Level | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline(Page[TimelineItem]):
    """Events, oldest first; `limit` counts generations."""

    items: tuple[TimelineItem, ...]


def timeline(
    *, project_id: int, conversation_id: str, cursor: str | None = None, limit: int = 50
) -> Timeline | None:
    """Events of a conversation, oldest first; `limit` counts generations. None if it does not
    exist.

    Three queries. Raises BadCursor.
    """
    shown_up_to = decode_number_cursor(cursor) if cursor else 0
    row = Conversation.objects.filter(project_id=project_id, name=conversation_id).first()
    if row is None:
        return None
    calls = calls_of(row)
    # One call more at each end: the one before tells a model change, the one after a next page.
    found = list(calls.filter(generation__gte=shown_up_to).order_by("generation")[: limit + 2])
    before = found.pop(0) if found and found[0].generation == shown_up_to else None
    more = len(found) > limit
    found = found[:limit]
    cleared = Round.objects.filter(
        project_id=project_id,
        conversation=row,
        opened_by="clear",
        first_generation__gt=shown_up_to,
    )
    if more:
        cleared = cleared.filter(first_generation__lte=found[-1].generation)
    return Timeline(
        items=tuple(
            _events(found, before.model if before else None, list(cleared.order_by("number")))
        ),
        next=encode_cursor(found[-1].generation or 0) if more else None,
    )


def _events(
    calls: Iterable[Call], model: str | None, cleared: Sequence[Round]
) -> Iterable[TimelineItem]:
    waiting = list(cleared)
    for call in calls:
        while waiting and waiting[0].first_generation <= (call.generation or 0):
            yield _clear(waiting.pop(0))
        if model is not None and call.model != model:
            yield _event(call, "model_change")
        if _is_trimmed(call) or call.placed_by in _COMPACTED:
            yield _event(call, "compaction")
        yield _event(call, "call")
        model = call.model
    yield from map(_clear, waiting)


def _clear(opened: Round) -> TimelineItem:
    return TimelineItem(
        generation=opened.first_generation,
        round_number=opened.number,
        at=opened.started_at,
        event="clear",
        call_id=None,
        model=None,
        prompt_tokens=None,
        level=None,
    )


def _is_trimmed(call: Call) -> bool:
    before, after = call.trim_before_bytes, call.trim_after_bytes
    return before is not None and after is not None and after < before


def _event(call: Call, event: str) -> TimelineItem:
    return TimelineItem(
        generation=call.generation or 0,
        round_number=call.round_number or 1,
        at=call.started_at,
        event=event,
        call_id=call.name,
        model=call.model,
        prompt_tokens=call.prompt_tokens,
        level=Level(call.level),
    )
