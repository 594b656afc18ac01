"""Streams that are asked for again, as they are recorded: the later attempt takes the number.

What looks a call up by its generation finds the latest attempt so; the earlier ones keep the number
beside them (`Call.attempt_of`), and are counted by their conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.conversations.repeated_streams import (
    NewestStream,
    Standing,
    StreamRequest,
    is_again,
    is_before,
    mark_of,
)
from helmdash.operations.recording.conversation_rows import ConversationRow
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.models import CallName, PendingPrompt
from helmdash.records.querysets import calls_of

# Causes of an answer that has not a byte to read.
_NOTHING = (FailureCause.LIKELY_TIMEOUT, FailureCause.EMPTY_COMPLETION)
# Looked up, for a call of the enumeration costs ten times as much.
_LEVELS = {level.value: level for level in Level}


class _Later(NamedTuple):
    """An attempt that took the number of one before it."""

    row: ConversationRow
    generation: int
    over: datetime


class _Counted(NamedTuple):
    """A stored attempt before which another one has been recorded: so many more tries."""

    row: ConversationRow
    generation: int
    attempts: int


class RepeatedStreams:
    """The repeated streams of one transaction."""

    def __init__(self) -> None:
        self._later: list[_Later] = []
        self._counted: list[_Counted] = []

    def find(self, row: ConversationRow, item: Judged) -> NewestStream | None:
        """The attempt before this one, by its locked conversation; None: the call is no repeat."""
        links = item.capture.links
        if row.newest_stream is None or links is None:
            return None
        newest = NewestStream.from_json(row.newest_stream)
        request = StreamRequest(
            mark=lambda: _mark(item), started_at=item.started_at, is_retry=links.is_retry
        )
        return newest if is_again(newest, request, generation=row.generation) else None

    def find_after(self, row: ConversationRow, item: Judged) -> NewestStream | None:
        """The attempt after this one, by its locked conversation, where that was recorded first;
        None: there is none."""
        links, capture = item.capture.links, item.capture
        if row.newest_stream is None or links is None or not links.is_stream:
            return None
        if not _is_broken(item):
            return None
        newest = NewestStream.from_json(row.newest_stream)
        request = StreamRequest(
            mark=lambda: _mark(item), started_at=item.started_at, is_retry=links.is_retry
        )
        is_earlier = is_before(
            newest,
            request,
            over=_over(item),
            is_cancelled=capture.effective_status == "cancelled",
            generation=row.generation,
        )
        return newest if is_earlier else None

    def take_before(
        self,
        row: ConversationRow,
        item: Judged,
        after: NewestStream,
        waiting: Iterable[dict[str, Any]],
    ) -> None:
        """The conversation has taken in an attempt before its newest call, which is a later try
        then. waiting: as for `take`."""
        more = item.capture.attempt
        row.earlier_attempts = (row.earlier_attempts or 0) + 1
        row.newest_stream = replace(after, attempts=after.attempts + more).to_json()
        for call in waiting:
            if (call["conversation_id"], call["generation"]) == (row.id, row.generation):
                call["attempt"] += more
                return
        self._counted.append(_Counted(row, row.generation, more))

    def take(self, row: ConversationRow, item: Judged, waiting: Iterable[dict[str, Any]]) -> None:
        """The conversation has taken in another attempt at its newest generation. waiting: the rows
        of calls that this transaction is about to insert."""
        row.earlier_attempts = (row.earlier_attempts or 0) + 1
        for call in waiting:
            if (call["conversation_id"], call["generation"]) == (row.id, row.generation):
                call["generation"], call["attempt_of"] = None, row.generation
        self._later.append(_Later(row, row.generation, _over(item)))

    def write(self) -> None:
        """Take the numbers from the stored attempts, before the later ones are inserted."""
        for row, generation, more in self._counted:
            calls_of(row).filter(generation=generation).update(attempt=F("attempt") + more)
        for row, generation, over in self._later:
            if not row.is_new:
                calls_of(row).filter(generation=generation).update(
                    generation=None, attempt_of=generation
                )
                CallName.objects.filter(
                    project_id=row.project_id, conversation_id=row.id, generation=generation
                ).update(generation=None)
            # A text that came with the attempt was to be answered by the number after this one.
            PendingPrompt.objects.filter(
                project_id=row.project_id,
                conversation_name=row.name,
                answered_from=generation + 1,
                at__lte=over,
            ).update(answered_from=generation)


def standing_of(row: ConversationRow) -> Standing:
    """How a conversation stands before its next call."""
    return Standing(
        level=_LEVELS[row.level],
        known_level=_LEVELS[row.known_level] if row.known_level else None,
        cut_generation=row.cut_generation,
    )


def newest_stream(
    item: Judged, *, generation: int, before: Standing, is_attempt: bool
) -> dict[str, object] | None:
    """By what a call that has just been numbered is known if it is asked for again; None: it was no
    stream, or says nothing. is_attempt: it is another attempt at a stream, in whatever way."""
    links, capture = item.capture.links, item.capture
    if links is None or not (links.is_stream or is_attempt):
        return None
    mark = _mark(item)
    if not mark:
        return None
    is_too_long = item.cause is not None and item.cause.name is FailureCause.CONTEXT_OVERFLOW
    if is_too_long:
        return None
    return NewestStream(
        generation=generation,
        mark=mark,
        started_at=item.started_at,
        over=_over(item),
        attempts=capture.attempt,
        is_broken=_is_broken(item),
        is_cancelled=capture.effective_status == "cancelled",
        before=before,
    ).to_json()


def counted_on(item: Judged, again: NewestStream) -> Judged:
    """The call with the attempts before it counted."""
    attempt = again.attempts + item.capture.attempt
    return replace(item, capture=replace(item.capture, attempt=attempt))


def _mark(item: Judged) -> str:
    links = item.capture.links
    return mark_of(links, model=item.capture.model, caller=item.caller) if links else ""


def _is_broken(item: Judged) -> bool:
    """Whether it has no answer that a dialogue could go on from."""
    is_nothing = item.cause is not None and item.cause.name in _NOTHING
    return is_nothing or item.capture.effective_status != "success"


def _over(item: Judged) -> datetime:
    return item.started_at + timedelta(milliseconds=item.capture.latency_ms or 0)
