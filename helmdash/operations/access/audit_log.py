"""The audit log keeps what is younger than the operator's setting says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from helmdash import conf
from helmdash.operations.database.transactions import write_and_pause
from helmdash.records.models import AuditEntry

# A step writes some milliseconds.
_STEP: Final = 1_000


def forget_old(*, now: datetime) -> int:
    """Delete entries that are older than HELMDASH_AUDIT_DAYS; how many. In short transactions."""
    days = conf.env().audit_days
    if not days:
        return 0
    old = AuditEntry.objects.filter(at__lt=now - timedelta(days=days)).order_by("at")
    gone = 0
    while step := write_and_pause(lambda: _delete_some(list(old.values_list("pk")[:_STEP]))):
        gone += step
    return gone


def _delete_some(ids: list[tuple[int]]) -> int:
    return AuditEntry.objects.filter(pk__in=[pk for (pk,) in ids]).delete()[0]
