"""Rounds that a client's own compaction opens, in conversations that their calls name.

Those that name none are recognized with their conversation (operations.recording.inference).
"""

from __future__ import annotations

from django.db.models import Q

from helmdash.core.agents.contexts import are_alike, is_compacted, is_later
from helmdash.core.agents.side_requests import COMPACTION
from helmdash.core.calls.lanes import Lane
from helmdash.core.conversations.chains import Placing
from helmdash.operations.recording.conversation_rows import (
    ConversationRow,
    is_history_of,
    is_late_call,
)
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.querysets import calls_of

OPENED_BY = Placing.COMPACTION.value


class ClientCompactions:
    """What the calls of one transaction tell of compactions."""

    def __init__(self) -> None:
        # By conversation: whether its client has asked for one since its newest main call. Only
        # what this transaction has seen; for the rest the database is asked.
        self._asked: dict[int, bool] = {}

    def note_side(self, row: ConversationRow, item: Judged) -> None:
        """A side call was taken in."""
        if item.capture.purpose == COMPACTION and _is_done(item):
            self._asked[row.id] = True

    def note_main(self, row: ConversationRow) -> None:
        """A main call was taken in that names no conversation, whatever opened a round with it."""
        self._asked[row.id] = False

    def opened_by(self, row: ConversationRow, item: Judged) -> str:
        """What opens a round with this main call, before its conversation takes it in; "": it goes
        on with the round that is open."""
        if is_history_of(row, item):
            return ""
        told = item.capture.context
        if told is None and not self._may_have_asked(row):
            # Most calls: their client names no context, and asks for nothing beside them.
            self._asked[row.id] = False
            return ""
        is_opening = (
            row.generation > 0
            and not is_late_call(row, item)
            and is_compacted(
                known=row.context,
                told=told,
                before=row.prompt_tokens,
                now=item.health.prompt_tokens,
                has_asked=lambda: self._has_asked(row),
            )
        )
        known = row.context
        if told is not None and (
            known is None or is_later(known, told) or not are_alike(known, told)
        ):
            row.context = told
        self._asked[row.id] = False
        return OPENED_BY if is_opening else ""

    def _may_have_asked(self, row: ConversationRow) -> bool:
        """False where `_has_asked` is false, whatever the calls were."""
        return bool(row.side_calls or row.client_compacted_at or self._asked.get(row.id))

    def _has_asked(self, row: ConversationRow) -> bool:
        if row.client_compacted_at is not None and row.client_compacted_at >= row.latest_at:
            return True  # it said so itself (operations.recording.client_events)
        known = self._asked.get(row.id)
        if known is not None or not row.side_calls:
            return bool(known)
        done = Q(lane=Lane.SIDE.value, purpose=COMPACTION, status="success", cause="")
        newest = calls_of(row).filter(done | Q(generation=row.generation))
        lane = newest.order_by("-started_at", "-id").values_list("lane", flat=True).first()
        return lane == Lane.SIDE.value


def _is_done(item: Judged) -> bool:
    return item.capture.effective_status == "success" and item.cause is None
