"""Deleting messages that no call has carried since a line: with old calls, or with old texts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.db import connection
from django.db.models import QuerySet

from helmdash.operations.database.steps import StepSize, at_once
from helmdash.operations.database.transactions import write_and_pause
from helmdash.operations.recording.message_keys import MESSAGE_SEEN_PRECISION
from helmdash.operations.retention.erasing import UNSEEN
from helmdash.records.models import StoredMessage


def unused_messages(project_id: int, before: datetime) -> QuerySet[StoredMessage]:
    """Those that no call has carried since, but for what is being erased at this moment."""
    return StoredMessage.objects.filter(
        project_id=project_id, latest_seen_at__lt=before - MESSAGE_SEEN_PRECISION
    ).exclude(latest_seen_at=UNSEEN)


def delete_unused_messages(
    project_id: int, before: datetime, batch: int, step: Callable[[int], None]
) -> int:
    """Delete them in short transactions; how many. step: hears of each how many went."""
    unused, total, size = unused_messages(project_id, before), 0, StepSize(batch)
    while ids := at_once(unused.order_by("latest_seen_at", "id"), size.rows, bytes_of="body"):
        # Asked once more: a call that carries one may have been stored since it was found, or be
        # waited for here.
        some = unused.filter(id__in=ids)
        gone = write_and_pause(size.timed(partial(some._raw_delete, connection.alias))) or 0
        total += gone
        step(gone)
    return total
