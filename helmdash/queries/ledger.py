"""The recorder's ledger: what became of every call that was taken in, of each process and in all.

accepted = stored + duplicate + rejected + dropped + waiting, in each row and in the sum. What was
stored is written in the transaction that stores it, the rest at most once a second. Whoever reads
the spool of a process that was killed closes its row, which from then on has accepted what it had
settled, and accepts what waited there as its own; what turns out to be stored already is counted
in the dead process's row and not again. Calls that were under way are lost by the process that was
killed, not by its heir.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

from django.db.models import QuerySet, Sum

from helmdash.records.models import RecorderLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCounts:
    """Calls, by what became of them.

    `bare` are among the stored; `damaged_lines` are lines of the spool and no calls; `spool_bytes`
    are bytes on disk.
    """

    accepted: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    spooled: int = 0
    dropped: int = 0
    in_flight_lost: int = 0
    bare: int = 0
    damaged_lines: int = 0
    waiting: int = 0
    spool_bytes: int = 0

    def __add__(self, other: LedgerCounts) -> LedgerCounts:
        """Both together."""
        return LedgerCounts(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS})


# By the name of the process that asked, of which there is one but in tests.
_latest_others: dict[str, LedgerCounts] = {}

COUNTS = tuple(field.name for field in fields(LedgerCounts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLedger:
    """One process that recorded, or records now."""

    name: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    """None: running, or crashed and not yet followed by another process."""
    counts: LedgerCounts
    is_own: bool = False
    """The process that answers: its numbers are those of this moment."""


def processes(*, own: ProcessLedger | None = None, limit: int = 100) -> tuple[ProcessLedger, ...]:
    """The server processes that recorded, newest first.

    own: what this process knows of itself, which is newer than its row; None: it records nothing.
    """
    rows = RecorderLedger.objects.order_by("-started_at", "-id")[:limit]
    found = [_process(row) for row in rows if own is None or row.name != own.name]
    return tuple(([own] if own else []) + found)


def totals(*, own: ProcessLedger | None = None) -> LedgerCounts:
    """The counts of all processes added up, `own` (None: no such) as it is now and not as its row
    says."""
    return others(own.name) + own.counts if own is not None else _sum(RecorderLedger.objects.all())


def others(name: str) -> LedgerCounts:
    """All processes but this one. Remembered for `latest_others`."""
    found = _sum(RecorderLedger.objects.exclude(name=name))
    _latest_others.clear()
    _latest_others[name] = found
    return found


def latest_others(name: str) -> LedgerCounts:
    """What `others` found last, for when the database is unavailable; zeros if it always was."""
    return _latest_others.get(name, LedgerCounts())


def _sum(rows: QuerySet[RecorderLedger]) -> LedgerCounts:
    return LedgerCounts(**rows.aggregate(**{name: Sum(name, default=0) for name in COUNTS}))


def _process(row: RecorderLedger) -> ProcessLedger:
    return ProcessLedger(
        name=row.name,
        started_at=row.started_at,
        seen_at=row.seen_at,
        stopped_at=row.stopped_at,
        counts=LedgerCounts(**{name: getattr(row, name) for name in COUNTS}),
    )
