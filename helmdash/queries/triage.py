"""What people said of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from helmdash.records.models import Conversation, TriageWord

# The newest ones; older words say nothing about now.
SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One word, with who said it and when; text: that of a note."""

    word: str
    text: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What was said of a conversation, newest first; snoozed_until: where that holds now."""

    said: tuple[Said, ...]
    snoozed_until: datetime | None


def triage_of(*, project_id: int, conversation: str) -> Triage:
    """The newest SHOWN words. Two queries."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation).first()
    if row is None:
        return Triage(said=(), snoozed_until=None)
    rows = TriageWord.objects.filter(conversation=row).order_by("-id")[:SHOWN]
    return Triage(
        said=tuple(
            Said(word=each.word, text=each.text, by=each.by or "", at=each.at) for each in rows
        ),
        snoozed_until=row.snoozed_until,
    )
