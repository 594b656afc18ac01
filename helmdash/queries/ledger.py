"""The recorder's ledger: what became of every call that was taken in, of each process and in all.

accepted = stored + duplicate + rejected + dropped + waiting, in each row and in the sum. A row is
written at most once a second: of a process that was killed it may miss what was stored in its last
second, and whoever reads its spool counts those calls as duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import Sum

from helmdash.records.models import RecorderLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCounts:
    """Calls, by what became of them; `spool_bytes` are bytes on disk."""

    accepted: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    spooled: int = 0
    dropped: int = 0
    in_flight_lost: int = 0
    waiting: int = 0
    spool_bytes: int = 0

    def __add__(self, other: LedgerCounts) -> LedgerCounts:
        """Both together."""
        return LedgerCounts(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS})


COUNTS = tuple(field.name for field in fields(LedgerCounts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLedger:
    """One process that recorded, or records now."""

    name: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    """None: running, or ended by force and not yet followed by another process."""
    counts: LedgerCounts
    is_own: bool = False
    """The process that answers: its numbers are those of this moment."""


def processes(*, own: ProcessLedger | None = None, limit: int = 100) -> tuple[ProcessLedger, ...]:
    """The processes, newest first. `own`: what this process knows of itself, which is newer."""
    rows = RecorderLedger.objects.order_by("-started_at", "-id")[:limit]
    found = [_process(row) for row in rows if own is None or row.name != own.name]
    return tuple(([own] if own else []) + found)


def totals(*, own: ProcessLedger | None = None) -> LedgerCounts:
    """All processes together."""
    rows = RecorderLedger.objects.all()
    if own is not None:
        rows = rows.exclude(name=own.name)
    summed = rows.aggregate(**{name: Sum(name, default=0) for name in COUNTS})
    return LedgerCounts(**summed) + (own.counts if own else LedgerCounts())


def _process(row: RecorderLedger) -> ProcessLedger:
    return ProcessLedger(
        name=row.name,
        started_at=row.started_at,
        seen_at=row.seen_at,
        stopped_at=row.stopped_at,
        counts=LedgerCounts(**{name: getattr(row, name) for name in COUNTS}),
    )
