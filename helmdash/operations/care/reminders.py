"""Reminders: what an agent wants to know after a fresh start. Positions run from 1 without gaps.

Writing one counts as following the guidance that asked for it.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.care.remediation import CareAction, note_reminder
from helmdash.operations.care.locked_conversation import LockedConversation, lock
from helmdash.operations.care.problems import CareProblem, NoConversation, NoReminder
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care import ReminderView, reminder_view
from helmdash.records.audit import note_care
from helmdash.records.models import Guidance, Reminder
from helmdash.records.models.care import REMINDER_KINDS

# A page of text. The package has a fifth of a window at most, so longer ones could not survive.
MAX_CONTENT_CHARS = 20_000
# More notes than anybody keeps in order; a loop that only adds must end somewhere.
MAX_REMINDERS = 200
RE_ENTRY = "re_entry"


def add_reminder(
    *,
    actor: Actor,
    project: ProjectInfo,
    conversation: str,
    content: str,
    kind: str = "note",
    position: int | None = None,
    now: datetime,
) -> ReminderView:
    """Add a reminder before the one at `position`, which is cut to 1..n+1; None: at the end.

    Raises Forbidden, NoConversation, and CareProblem naming the field.
    """
    require(actor, Right.CARE, project_id=project.id)
    text = _checked(content)
    _check_kind(kind)

    def work() -> ReminderView:
        locked = _lock(project, conversation)
        _note(actor, locked, "reminded")
        return reminder_view(_add(locked, text, kind=kind, position=position, now=now))

    return write(work)


def update_reminder(
    *,
    actor: Actor,
    project: ProjectInfo,
    conversation: str,
    reminder_id: str,
    content: str | None = None,
    kind: str | None = None,
    position: int | None = None,
    now: datetime,
) -> ReminderView:
    """Change a reminder, or move it to a position (from 1); what is None stays.

    Raises Forbidden, NoConversation, NoReminder, and CareProblem naming the field.
    """
    require(actor, Right.CARE, project_id=project.id)
    text = None if content is None else _checked(content)
    if kind is not None:
        _check_kind(kind)

    def work() -> ReminderView:
        locked = _lock(project, conversation)
        rows = _rows(locked)
        row = _find(rows, reminder_id)
        if text is None and kind is None and position is None:
            return reminder_view(row)
        _note(actor, locked, "note changed")
        row.content = row.content if text is None else text
        row.kind = kind or row.kind
        row.updated_at = now
        row.save(update_fields=["content", "kind", "updated_at"])
        if position is not None:
            rows.remove(row)
            rows.insert(_index(position, len(rows)), row)
            _number(rows)
        follow(locked, now=now)
        return reminder_view(row)

    return write(work)


def delete_reminder(
    *, actor: Actor, project: ProjectInfo, conversation: str, reminder_id: str, now: datetime
) -> None:
    """Delete a reminder; those behind it move up. Raises Forbidden, NoConversation, NoReminder."""
    require(actor, Right.CARE, project_id=project.id)

    def work() -> None:
        locked = _lock(project, conversation)
        rows = _rows(locked)
        row = _find(rows, reminder_id)
        rows.remove(row)
        row.delete()
        _note(actor, locked, "note deleted")
        _number(rows)
        follow(locked, now=now)

    write(work)


def add_re_entry(locked: LockedConversation, content: str | None, *, now: datetime) -> bool:
    """Add the last note before a fresh start; False where it is blank, None or known already.

    A clear that is asked for again (a lost response) must not note the same twice. Raises
    CareProblem naming `reminder_content`.
    """
    if content is None or not content.strip():
        return False
    text = _checked(content, field="reminder_content")
    known = Reminder.objects.filter(
        project_id=locked.row.project_id, conversation=locked.row, kind=RE_ENTRY, content=text
    )
    if known.exists():
        return False
    _add(locked, text, kind=RE_ENTRY, position=None, now=now, field="reminder_content")
    return True


def follow(locked: LockedConversation, *, now: datetime) -> None:
    """Note that a reminder was written: the guidance of the open round is followed."""
    state = note_reminder(locked.state)
    if state != locked.state:
        locked.save(state)
    mark_followed(locked, now=now)


def mark_followed(locked: LockedConversation, *, now: datetime) -> None:
    """Put the time to the guidance of the open round that nobody has followed yet."""
    Guidance.objects.filter(
        project_id=locked.row.project_id,
        conversation=locked.row,
        round_number=locked.row.round_number,
        action__in=(CareAction.GUIDE.value, CareAction.RECORD_PROMPT.value),
        followed_at__isnull=True,
    ).update(followed_at=now)


def _add(
    locked: LockedConversation,
    text: str,
    *,
    kind: str,
    position: int | None,
    now: datetime,
    field: str = "content",
) -> Reminder:
    rows = _rows(locked)
    if len(rows) >= MAX_REMINDERS:
        raise CareProblem(
            field, f"a conversation has at most {MAX_REMINDERS} reminders; delete one first"
        )
    row = Reminder(
        project_id=locked.row.project_id,
        conversation=locked.row,
        name=f"rem_{secrets.token_hex(8)}",
        position=len(rows) + 1,
        kind=kind,
        content=text,
        created_at=now,
        updated_at=now,
    )
    row.save(force_insert=True)
    rows.insert(len(rows) if position is None else _index(position, len(rows)), row)
    _number(rows)
    follow(locked, now=now)
    return row


def _note(actor: Actor, locked: LockedConversation, action: str) -> None:
    row = locked.row
    note_care(actor=actor, project_id=row.project_id, conversation=row.name, action=action)


def _lock(project: ProjectInfo, conversation: str) -> LockedConversation:
    locked = lock(project.id, conversation)
    if locked is None:
        raise NoConversation(conversation)
    return locked


def _rows(locked: LockedConversation) -> list[Reminder]:
    rows = Reminder.objects.filter(project_id=locked.row.project_id, conversation=locked.row)
    return list(rows.order_by("position", "id"))


def _find(rows: list[Reminder], reminder_id: str) -> Reminder:
    for row in rows:
        if row.name == reminder_id:
            return row
    raise NoReminder(reminder_id)


def _index(position: int, others: int) -> int:
    """Where a reminder goes among the others: position 1 is the first, n+1 the end."""
    return min(max(position, 1), others + 1) - 1


def _number(rows: list[Reminder]) -> None:
    moved = []
    for position, row in enumerate(rows, start=1):
        if row.position != position:
            row.position = position
            moved.append(row)
    Reminder.objects.bulk_update(moved, ["position"])


def _checked(content: str, *, field: str = "content") -> str:
    text = content.strip()
    if not text:
        raise CareProblem(field, "say what is to be remembered; the text is empty")
    if len(text) > MAX_CONTENT_CHARS:
        raise CareProblem(
            field,
            f"a reminder has at most {MAX_CONTENT_CHARS:,} characters, this one {len(text):,};"
            " shorten it or split it",
        )
    if "\0" in text:
        raise CareProblem(field, "the character U+0000 cannot be stored; leave it out")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise CareProblem(field, "half a surrogate pair cannot be stored; leave it out")
    return text


def _check_kind(kind: str) -> None:
    if kind not in REMINDER_KINDS:
        raise CareProblem("kind", f"choose one of {', '.join(REMINDER_KINDS)}")
