"""What clients tell of a conversation that is no call (core.agents.claude_hooks)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeAlias

from helmdash.answers import Doc, answer
from helmdash.core.agents.claude_hooks import (
    DETAIL_CHARS,
    ClientEvent,
    ClientEventKind,
    ClientStatus,
    is_status,
    read_hook,
    read_status,
)
from helmdash.core.agents.status_line import StatusLine, status_line
from helmdash.core.conversations.attention import rank_of
from helmdash.core.conversations.placement import is_gone_by
from helmdash.operations.care.problems import NoConversation
from helmdash.operations.database.transactions import write
from helmdash.operations.recording.judged.masking import masker
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.conversations import standing
from helmdash.records import models
from helmdash.records.models import Conversation, Payload

# Of a conversation, and of those that come at once. The longest sessions compact some dozen times.
MOST_EVENTS = 1_000

_Told: TypeAlias = dict[str, tuple[ClientEvent, datetime]]  # by key, with the time of each


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
    return HookAnswer(kept=note_event(project=project, event=event, now=now))


def note_event(*, project: ProjectInfo, event: ClientEvent, now: datetime) -> bool:
    """Keep an event with its conversation; False: that has MOST_EVENTS already, and it is dropped.

    A compaction lets the next smaller prompt open a round; a refusal is a reason to look, until the
    next call. Told twice, it is kept once. Raises NoConversation where the project has none of its
    name (yet).
    """
    refused = _note(project, event.conversation, {_key(event, now): (event, now)})
    if refused is None:
        raise NoConversation(
            f"No call of the conversation {event.conversation} was recorded yet, so there is "
            "nothing that this could be said of."
        )
    return not refused


def note_events(*, project: ProjectInfo, events: Iterable[tuple[ClientEvent, datetime]]) -> int:
    """Keep many events, each as `note_event` does at its time: a transaction for each conversation.

    How many of them were too many, here or in their conversation. Those of conversations that the
    project has not are left out, and are not too many.
    """
    talks: dict[str, _Told] = {}
    taken = refused = 0
    for event, at in events:
        told = talks.setdefault(event.conversation, {})
        key = _key(event, at)
        if key in told:
            continue
        if taken >= MOST_EVENTS:
            refused += 1
            continue
        told[key] = event, at
        taken += 1
    names = [name for name, told in talks.items() if told]
    known = Conversation.objects.filter(project_id=project.id, name__in=names)
    for name in sorted(known.values_list("name", flat=True)):
        refused += _note(project, name, talks[name]) or 0
    return refused


def _key(event: ClientEvent, at: datetime) -> str:
    return event.key or f"{event.kind.value} {at.isoformat()}"


def _note(project: ProjectInfo, name: str, told: _Told) -> int | None:
    """Keep the events of a conversation. How many were too many; None: there is no such one."""

    def work() -> int | None:
        row = _locked(project, name)
        if row is None:
            return None
        held = models.ClientEvent.objects.filter(project_id=project.id, conversation=row)
        known = set(held.filter(key__in=told).values_list("key", flat=True))
        fresh = [(key, *each) for key, each in told.items() if key not in known]
        if not fresh:
            return 0
        new = fresh[: max(MOST_EVENTS - held.count(), 0)]
        models.ClientEvent.objects.bulk_create(
            models.ClientEvent(
                project_id=project.id,
                conversation=row,
                key=key,
                kind=event.kind.value,
                detail=_detail(project, event),
                at=at,
            )
            for key, event, at in new
        )
        _mark(project, row, [(event, at) for _, event, at in new])
        return len(fresh) - len(new)

    return write(work)


def _detail(project: ProjectInfo, event: ClientEvent) -> str:
    said = event.told(keeps_texts=project.payload != Payload.OFF.value)
    return masker(project).text(said)[:DETAIL_CHARS]


def _mark(
    project: ProjectInfo, row: Conversation, events: Sequence[tuple[ClientEvent, datetime]]
) -> None:
    """What new events say of their conversation."""
    compacted = [at for event, at in events if event.kind is ClientEventKind.COMPACTION]
    # What the conversation went on after is no reason any more, however late it is told.
    refusals = [
        event
        for event, at in events
        if event.kind is ClientEventKind.REFUSAL and not is_gone_by(at, newest_at=row.latest_at)
    ]
    changed: list[str] = []
    if compacted:
        # One that is told late takes nothing back.
        row.client_compacted_at = max([*compacted, row.client_compacted_at or compacted[0]])
        changed += ["client_compacted_at"]
    if refusals:
        row.client_refusal = _detail(project, refusals[-1]) or refusals[-1].kind.value
        row.attention = rank_of(row)
        # News: whoever put it off has not seen this.
        row.snoozed_until = row.snoozed_rank = None
        changed += ["client_refusal", "attention", "snoozed_until", "snoozed_rank"]
    if changed:
        row.save(update_fields=changed)


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
