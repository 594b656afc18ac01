"""What people say about trouble: that calls which fail are mended, or are not to be told for now.

Every word is kept with who said it and when; the newest one counts (queries.failures).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db.models import QuerySet

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.calls.failures import FailureCause
from helmdash.core.conversations.attention import rank_of
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.failures import GroupState
from helmdash.records import audit
from helmdash.records.conversation_names import named
from helmdash.records.models import Conversation, FailureMark, TriageWord

# Long enough for a provider to mend itself, short enough that nobody forgets it.
MUTE: Final = timedelta(days=1)
SNOOZE: Final = timedelta(hours=1)


class NoSuchConversation(Exception):
    """The project has no conversation with this id."""


class Word(StrEnum):
    """What somebody says of a conversation.

    done: it needs nobody, until a call gives a reason again. snoozed: for SNOOZE, unless it gets
    worse. open: it needs somebody after all. note: words for whoever looks next.
    """

    DONE = "done"
    SNOOZED = "snoozed"
    OPEN = "open"
    NOTE = "note"


def mark_failures(
    *,
    actor: Actor,
    project: ProjectInfo,
    cause: FailureCause,
    model_key: str,
    state: GroupState,
    now: datetime,
) -> None:
    """Say of a model's calls that failed for a cause that they are resolved, muted or open again.

    Resolved ones come back with the next call that fails so; muted ones after MUTE, if one did.
    Raises Forbidden.
    """
    require(actor, Right.TRIAGE, project_id=project.id)

    def work() -> None:
        FailureMark.objects.create(
            project_id=project.id,
            cause=cause.value,
            model_key=model_key,
            state=state.value,
            by=str(actor)[:150],
            at=now,
            until=now + MUTE if state is GroupState.MUTED else None,
        )
        audit.note(
            actor=actor,
            project_id=project.id,
            kind="failures",
            action=state.value,
            subject=f"{cause.value} of {model_key}",
        )

    write(work)


def say(
    *,
    actor: Actor,
    project: ProjectInfo,
    conversation: str,
    word: Word,
    text: str = "",
    now: datetime,
) -> None:
    """Say something of a conversation; text: the words of a note. Raises Forbidden and
    NoSuchConversation."""
    require(actor, Right.TRIAGE, project_id=project.id)

    def work() -> None:
        found = Conversation.objects.select_for_update()
        row = named(project.id, conversation, among=found)
        if row is None:
            raise NoSuchConversation(f"There is no conversation {conversation}.")
        TriageWord.objects.create(
            project_id=project.id,
            conversation=row,
            word=word.value,
            text=text,
            by=str(actor)[:150],
            at=now,
        )
        _follow(row, word, now)
        audit.note_care(
            actor=actor, project_id=project.id, conversation=row.name, action=word.value
        )

    write(work)


def wake(*, now: datetime) -> int:
    """Let conversations whose snooze is over be seen again; how many."""

    def work() -> int:
        rows = list(_over(now).select_for_update().order_by("pk")[:_WOKEN_AT_ONCE])
        for row in rows:
            _follow(row, Word.OPEN, now)
        return len(rows)

    return write(work)


def is_any_over(now: datetime) -> bool:
    """Whether a snooze is over. One look at an index."""
    return _over(now).exists()


_WOKEN_AT_ONCE = 500


def _over(now: datetime) -> QuerySet[Conversation]:
    return Conversation.objects.filter(snoozed_until__isnull=False, snoozed_until__lte=now)


def _follow(row: Conversation, word: Word, now: datetime) -> None:
    match word:
        case Word.NOTE:
            return
        case Word.SNOOZED:
            row.snoozed_rank = row.attention or row.snoozed_rank or 0
            row.snoozed_until, row.attention = now + SNOOZE, 0
        case Word.DONE:
            # What was seen to is no reason any more; a level is one again with the next call.
            row.recent_failures, row.cut_generation, row.attention = 0, None, 0
            row.client_refusal = None
            row.snoozed_until = row.snoozed_rank = None
        case Word.OPEN:
            row.snoozed_until = row.snoozed_rank = None
            row.attention = rank_of(row)
    row.save(update_fields=_MOVED)


_MOVED = (
    *("attention", "recent_failures", "cut_generation", "client_refusal"),
    *("snoozed_until", "snoozed_rank"),
)
