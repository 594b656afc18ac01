"""What clients tell of a conversation that is no call (core.agents.claude_hooks)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from helmdash.answers import Doc, answer
from helmdash.core.agents.claude_hooks import (
    ClientEvent,
    ClientEventKind,
    ClientStatus,
    is_status,
    read_hook,
    read_status,
)
from helmdash.core.agents.status_line import StatusLine, status_line
from helmdash.core.conversations.attention import rank_of
from helmdash.operations.care.problems import NoConversation
from helmdash.operations.database.transactions import write
from helmdash.queries.access import ProjectInfo
from helmdash.queries.conversations.conversations import standing
from helmdash.records import models
from helmdash.records.models import Conversation


@answer("HookAnswer")
@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What became of a hook. Claude Code reads no member of this as an order."""

    kept: Annotated[bool, Doc("Whether anything of it was kept; most hooks tell nothing new.")]
    status_line: StatusLine | None = None


def take_claude_hook(
    *, project: ProjectInfo, body: Mapping[str, object], now: datetime
) -> HookAnswer:
    """Keep what a hook of Claude Code tells; to a status line, tell how its conversation stands.

    Raises HookProblem, and NoConversation where there is nothing that an event could be kept with.
    """
    if is_status(body):
        return _status(project, read_status(body))
    event = read_hook(body)
    if event is None:
        return HookAnswer(kept=False)
    if not note_event(project=project, event=event, now=now):
        raise NoConversation(
            f"No call of the conversation {event.conversation} was recorded yet, so there is "
            "nothing that this could be said of."
        )
    return HookAnswer(kept=True)


def note_event(*, project: ProjectInfo, event: ClientEvent, now: datetime) -> bool:
    """Keep an event with its conversation; False: the project has none of this name (yet).

    A compaction lets the next smaller prompt open a round; a refusal is a reason to look, until the
    next call. Told twice, it is kept once.
    """

    def work() -> bool:
        row = _locked(project, event.conversation)
        if row is None:
            return False
        _, is_new = models.ClientEvent.objects.get_or_create(
            project_id=project.id,
            conversation=row,
            key=event.key or f"{event.kind.value} {now.isoformat()}",
            defaults={"kind": event.kind.value, "detail": event.detail, "at": now},
        )
        if is_new and event.kind is ClientEventKind.COMPACTION:
            row.client_compacted_at = now
            row.save(update_fields=["client_compacted_at"])
        elif is_new and event.kind is ClientEventKind.REFUSAL:
            row.client_refusal = event.detail or event.kind.value
            row.attention = rank_of(row)
            # News: whoever put it off has not seen this.
            row.snoozed_until = row.snoozed_rank = None
            row.save(update_fields=["client_refusal", "attention", "snoozed_until", "snoozed_rank"])
        return True

    return write(work)


def _status(project: ProjectInfo, status: ClientStatus) -> HookAnswer:
    found = standing(project_id=project.id, conversation_id=status.conversation)
    if found is not None:
        note_window(project=project, status=status)
    line = status_line(
        found.health if found else None,
        round_number=found.round_number if found else None,
        client_window=status.window,
    )
    return HookAnswer(kept=found is not None and status.window is not None, status_line=line)


def note_window(*, project: ProjectInfo, status: ClientStatus) -> None:
    """Keep the window that a client says it counts on, where that is news."""
    if status.window is None:
        return
    rows = Conversation.objects.filter(project_id=project.id, name=status.conversation)
    known = rows.values_list("client_window", flat=True).first()
    if known != status.window:
        write(lambda: rows.update(client_window=status.window))


def _locked(project: ProjectInfo, name: str) -> Conversation | None:
    rows = Conversation.objects.select_for_update().filter(project_id=project.id, name=name)
    return rows.first()
