"""The timeline of a conversation: its calls, clears, compactions, changes of model, and what its
client told that is no call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from helmdash.answers import Doc, JsonName, Words
from helmdash.core.agents import contexts
from helmdash.core.agents.claude_hooks import ClientEventKind
from helmdash.core.budgets.levels import Level
from helmdash.core.conversations import chains
from helmdash.queries.lists.paging import Page, decode_number_cursor, encode_cursor
from helmdash.records.conversation_names import named
from helmdash.records.models import Call, ClientEvent, Conversation, Round
from helmdash.records.querysets import calls_of

# A compaction that its client tells is shown where the round begins, as any other.
_TOLD_WORDS = (ClientEventKind.REFUSAL.value, ClientEventKind.FAILURE.value)
# Earlier attempts at streams on one page; a client that never gives up may make any number.
MOST_EARLIER = 200
_COMPACTED = frozenset({chains.COMPACTED, contexts.COMPACTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """One event of a conversation. A clear belongs to no call: it says what it comes before.

    That call, the first of the round it opens, may still be to come.
    """

    generation: int
    round_number: Annotated[int, JsonName("round")]
    at: datetime
    event: Annotated[str, Words(("call", "clear", "compaction", "model_change", *_TOLD_WORDS))]
    call_id: str | None
    model: str | None
    prompt_tokens: int | None
    level: Level | None
    detail: Annotated[str | None, Doc("Of what the client told: its own words.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline(Page[TimelineItem]):
    """Events, oldest first; `limit` counts generations."""

    items: tuple[TimelineItem, ...]


def timeline(
    *, project_id: int, conversation_id: str, cursor: str | None = None, limit: int = 50
) -> Timeline | None:
    """Events of a conversation, oldest first; `limit` counts generations. None if it does not
    exist. Of earlier attempts at streams a page shows the newest MOST_EARLIER.

    Four queries, and one more where streams were asked for again. Raises BadCursor.
    """
    shown_up_to = decode_number_cursor(cursor) if cursor else 0
    row = named(project_id, conversation_id)
    if row is None:
        return None
    calls = calls_of(row)
    # One call more at each end: the one before tells a model change, the one after a next page.
    found = list(calls.filter(generation__gte=shown_up_to).order_by("generation")[: limit + 2])
    before = found.pop(0) if found and found[0].generation == shown_up_to else None
    more = len(found) > limit
    found = found[:limit]
    earlier = _earlier_attempts(row, found)
    cleared = Round.objects.filter(
        project_id=project_id,
        conversation=row,
        opened_by="clear",
        first_generation__gt=shown_up_to,
    )
    if more:
        cleared = cleared.filter(first_generation__lte=found[-1].generation)
    told = ClientEvent.objects.filter(project_id=project_id, conversation=row, kind__in=_TOLD_WORDS)
    if before is not None:
        told = told.filter(at__gt=before.started_at)
    if more:
        told = told.filter(at__lte=found[-1].started_at)
    items = _events(
        _in_turn(found, earlier), before.model if before else None, list(cleared.order_by("number"))
    )
    return Timeline(
        items=tuple(_with_told(items, list(told.order_by("at", "id")[:limit]), row)),
        next=encode_cursor(found[-1].generation or 0) if more else None,
    )


def _earlier_attempts(row: Conversation, found: Sequence[Call]) -> Mapping[int, list[Call]]:
    """The attempts before the latest ones of these generations, by those: of all the newest
    MOST_EARLIER, for a client may ask for ever. One query where the conversation has any."""
    attempts: dict[int, list[Call]] = defaultdict(list)
    if row.earlier_attempts and found:
        shown = (found[0].generation, found[-1].generation)
        calls = calls_of(row).filter(generation__isnull=True, attempt_of__range=shown)
        for call in reversed(list(calls.order_by("-id")[:MOST_EARLIER])):
            attempts[call.attempt_of or 0].append(call)
    return attempts


def _in_turn(found: Iterable[Call], earlier: Mapping[int, list[Call]]) -> Iterable[Call]:
    for call in found:
        yield from earlier.get(call.generation or 0, ())
        yield call


def _number(call: Call) -> int:
    return call.generation or call.attempt_of or 0


def _events(
    calls: Iterable[Call], model: str | None, cleared: Sequence[Round]
) -> Iterable[TimelineItem]:
    waiting = list(cleared)
    for call in calls:
        while waiting and waiting[0].first_generation <= _number(call):
            yield _clear(waiting.pop(0))
        if model is not None and call.model != model:
            yield _event(call, "model_change")
        if _is_trimmed(call) or call.placed_by in _COMPACTED:
            yield _event(call, "compaction")
        yield _event(call, "call")
        model = call.model
    yield from map(_clear, waiting)


def _with_told(
    items: Iterable[TimelineItem], told: Sequence[ClientEvent], row: Conversation
) -> Iterable[TimelineItem]:
    """What the client told stands after what was there by then."""
    waiting = list(told)
    generation, round_number = 0, 1
    for item in items:
        while waiting and waiting[0].at < item.at:
            yield _told(waiting.pop(0), generation, round_number)
        generation, round_number = item.generation, item.round_number
        yield item
    for event in waiting:
        yield _told(event, generation or row.generation, round_number)


def _told(event: ClientEvent, generation: int, round_number: int) -> TimelineItem:
    return TimelineItem(
        generation=generation,
        round_number=round_number,
        at=event.at,
        event=event.kind,
        call_id=None,
        model=None,
        prompt_tokens=None,
        level=None,
        detail=event.detail or None,
    )


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
        generation=_number(call),
        round_number=call.round_number or 1,
        at=call.started_at,
        event=event,
        call_id=call.name,
        model=call.model,
        prompt_tokens=call.prompt_tokens,
        level=Level(call.level),
    )
