"""The brake: care stops clearing where clearing leads nowhere.

A clear is due, and the round that is open and the one before it began with the same task, the same
texts that wait and the same reminders, and brought neither an answer for the user, nor a changed
reminder, nor (where a client's history shows them) a step that was not taken before. What the
package tells of earlier rounds does not count: it differs each time. Whatever of that changes makes
the clear due again; a person may say so too, and the count begins anew.

Each round keeps with its restart what it and the round before it began with (`marks_of`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.calls.finish import FinishReason
from helmdash.core.care.remediation import release
from helmdash.core.care.stored import whole_of
from helmdash.operations.care import pending_prompts
from helmdash.operations.care.locked_conversation import LockedConversation, lock
from helmdash.operations.care.problems import NoConversation
from helmdash.operations.care.values import ClientHistory
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import ProjectInfo
from helmdash.records import audit
from helmdash.records.models import Conversation, Reminder
from helmdash.records.querysets import calls_of

_DIGEST_BYTES = 8
# A thousand steps at twenty in a round. Steps that are new each time may lead nowhere too; so many
# rounds without a word to the user or a reminder want a person.
_MOST_ALIKE = 50


def holds(
    locked: LockedConversation, stored: Mapping[str, object], client: ClientHistory | None
) -> bool:
    """Whether a clear that is due by itself is not to be done. Three queries at most.

    stored: the restart of the open round. client: the history of the request; None: an agent asked
    over the API, whose steps are not known.
    """
    before = stored.get("before")
    if locked.state.is_released or not isinstance(before, Mapping):
        return False
    notes = stored.get("notes")
    if not notes == before.get("notes") == _notes(locked.row) or _is_answered(locked.row, 2):
        return False
    if (whole_of(stored.get("alike")) or 0) >= _MOST_ALIKE:
        return True
    if client is not None:
        since, start = whole_of(before.get("messages")), whole_of(stored.get("messages"))
        if since is None or start is None:
            return False
        return client.is_standstill(since, start, str(stored.get("digest")))
    waits = stored.get("waits")
    return waits == _waits(locked.row) and before.get("waits") in (None, waits)


def marks_of(
    locked: LockedConversation, stored: Mapping[str, object], *, by_itself: bool
) -> dict[str, object]:
    """What a round is begun with, for `holds`; to be asked before the row moves on to it.

    stored: the restart of the round before. by_itself: nobody asked for this clear; one that
    somebody asked for begins the count anew.
    """
    row = locked.row
    marks: dict[str, object] = {"notes": _notes(row), "waits": _waits(row)}
    if not by_itself or locked.state.is_released:
        return marks
    if row.round_number == 1:
        return marks | {"before": {"messages": 0, "notes": _digest(())}}
    if "notes" not in stored:
        return marks
    is_alike = stored["notes"] == marks["notes"] and not _is_answered(row, 1)
    known = {name: stored[name] for name in ("messages", "notes", "waits") if name in stored}
    alike = (whole_of(stored.get("alike")) or 0) + 1 if is_alike else 0
    return marks | {"before": known, "alike": alike}


def go_on(*, actor: Actor, project: ProjectInfo, conversation: str) -> bool:
    """Let care go on clearing: a person says so. False: it had not stopped.

    Raises Forbidden and NoConversation.
    """
    require(actor, Right.CARE, project_id=project.id)

    def work() -> bool:
        locked = lock(project.id, conversation)
        if locked is None:
            raise NoConversation(conversation)
        state = release(locked.state)
        if state == locked.state:
            return False
        locked.save(state)
        audit.note_care(
            actor=actor, project_id=project.id, conversation=locked.row.name, action="let go on"
        )
        return True

    return write(work)


def _notes(row: Conversation) -> str:
    rows = Reminder.objects.filter(project_id=row.project_id, conversation=row)
    return _digest(rows.order_by("position", "id").values_list("name", "kind", "content"))


def _waits(row: Conversation) -> str:
    return _digest(sorted(set(pending_prompts.pending(row))))


def _digest(values: object) -> str:
    text = json.dumps(list(values), default=str)  # type: ignore[call-overload]
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES, person=b"brake").hexdigest()


def _is_answered(row: Conversation, rounds: int) -> bool:
    """Whether a reply of the newest rounds was an answer: it did not end in calls of tools."""
    calls = calls_of(row).filter(
        round_number__gt=row.round_number - rounds,
        status="success",
        cause="",
    )
    return calls.exclude(finish_reason=FinishReason.TOOL_CALLS.value).exists()
