"""What became of a response that was still being made when its call was recorded.

OpenAI answers a request with `background` at once, and tells usage and end to whoever asks for the
response later. The first who does completes the call that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from helmdash.core.calls.capture import Capture, SentSizes, Status
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.rules import CALL_RULES
from helmdash.operations.database import rule_sets
from helmdash.operations.database.transactions import write
from helmdash.operations.exporting import outbox
from helmdash.operations.recording import call_rows
from helmdash.operations.recording.call_rows import Placed
from helmdash.operations.recording.conversation_batch import ConversationBatch
from helmdash.operations.recording.conversation_rows import lock_by_id
from helmdash.operations.recording.joining import Joining, KnownCall, KnownCalls
from helmdash.operations.recording.judged.judging import judge
from helmdash.operations.recording.judged.masking import masker
from helmdash.operations.rollups.noting import note
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.call_names import calls_at, find_places, reply_name
from helmdash.records.models import Call, Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterReply:
    """How a response ended. usage and finish_reason in the provider's words; None: not told."""

    usage: Mapping[str, object] | None
    finish_reason: str | None
    status: Status
    error_code: str | None = None
    error_message: str | None = None


def complete_call(
    *, project: ProjectInfo, reply_id: str, is_own: bool, reply: LaterReply, now: datetime
) -> bool:
    """Add to the call that made a response what is known of its end; whether there was one that
    did not know it. is_own: of an account of the project's own. One query where there is nothing
    to add."""
    name = reply_name(reply_id, is_own=is_own)
    place = find_places(project.id, [name]).get(name)
    if place is None:
        return False
    rules = budgets.table(project_id=project.id)

    def store() -> bool:
        row = calls_at(project.id, [place]).select_related("conversation").first()
        if row is None or not _is_open(row):
            return False
        # Conversations first, in the order that everybody locks in.
        held = {each.id: each for each in lock_by_id(project.id, {row.conversation_id or 0})}
        keeps_texts = project.payload != Payload.OFF.value
        told = _as_told(row, reply)
        item = judge(told, rules, caller=row.caller, now=now, keeps_texts=keeps_texts)
        columns = call_rows.call_row(
            Placed(item=item),
            project_id=project.id,
            rules_id=rule_sets.keep(CALL_RULES),
            masker=masker(project),
            now=now,
        )
        joining: Joining[None] = Joining(project.id, KnownCalls({}))
        known = KnownCall(answer=None, routes=row.routes, started_at=row.started_at, place=place)
        joining.take_later(known, item, columns)
        standings = ConversationBatch(project.id)
        changes = joining.apply(held, standings)
        standings.write()
        note(project.id, changes, now=now, levels=standings.moved_levels())
        outbox.note_recorded(project.id, joining.completed, now=now)
        return bool(changes)

    return write(store)


def _is_open(row: Call) -> bool:
    """Whether the call is recorded as one whose response was still being made, also one whose
    client did not wait for the end of its stream."""
    has_left = row.status == "cancelled" and row.error_code == _LEFT
    is_told = bool(row.finish_reason) or row.prompt_tokens is not None
    return (row.status == "success" or has_left) and not is_told


_LEFT = "client_disconnected"


def _as_told(row: Call, reply: LaterReply) -> Capture:
    return Capture(
        id=row.name,
        model=row.model,
        upstream_model=row.upstream_model or None,
        provider=row.provider or None,
        conversation=row.conversation.name if row.conversation is not None else None,
        lane=Lane(row.lane),
        purpose=row.purpose,
        routes=(CallRoute.GATEWAY,),
        caller=row.caller,
        usage=reply.usage,
        finish_reason=reply.finish_reason,
        status=reply.status,
        error_code=reply.error_code,
        error_message=reply.error_message,
        started_at=row.started_at,
        sent=SentSizes(bytes=row.sent_bytes, messages=row.sent_messages),
        # What the provider added to it meanwhile nobody knows.
        sent_is_prompt=False,
        client_window=row.client_window,
    )
