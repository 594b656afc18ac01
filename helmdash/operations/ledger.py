"""Writing the recorder's ledger (helmdash.queries.ledger reads it)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from operator import attrgetter

from django.db import connection, transaction
from django.db.models import F, Min
from django.db.models.functions import Coalesce

from helmdash.queries.ledger import COUNTS, LedgerCounts, ProcessLedger
from helmdash.records.models import Call, RecorderLedger
from helmdash.records.statements.bulk import is_sent_together
from helmdash.records.statements.direct import change_apart, tell_prepared

# Processes that have ended and are listed one by one; the rest is one row.
KEPT_ROWS = 100
EARLIER = "earlier processes"
# The names are those of our own columns.
_TABLE, _CHANGING = RecorderLedger._meta.db_table, ("seen_at", "stopped_at", *COUNTS)
_UPDATE = f"UPDATE {_TABLE} SET {', '.join(f'{each} = %s' for each in _CHANGING)} WHERE name = %s"
_UPSERT = (
    f"INSERT INTO {_TABLE} (name, started_at, {', '.join(_CHANGING)})"
    f" VALUES ({', '.join(['%s'] * (2 + len(_CHANGING)))}) ON CONFLICT (name) DO UPDATE"
    f" SET {', '.join(f'{each} = excluded.{each}' for each in _CHANGING)}"
)
_counts_of = attrgetter(*COUNTS)


def write(own: ProcessLedger) -> None:
    """Put the row of this process where its counts are. One statement, but for the first time.

    It comes with every group of calls; Django takes longer to word it than a database to do it.
    Where it fails, the caller's transaction goes on without it.
    """
    adapt = connection.ops.adapt_datetimefield_value
    times = (adapt(own.seen_at), adapt(own.stopped_at))
    values = (*times, *_counts_of(own.counts))
    if is_sent_together():
        # It fails with what it counts, and who records that does so once more, one by one.
        tell_prepared(_UPSERT, (own.name, adapt(own.started_at), *values))
        return
    if change_apart(_UPDATE, (*values, own.name)) > 0:
        return
    with transaction.atomic():
        RecorderLedger.objects.create(
            name=own.name,
            started_at=own.started_at,
            seen_at=own.seen_at,
            stopped_at=own.stopped_at,
            **asdict(own.counts),
        )


def try_to_write(name: str, *, now: datetime) -> None:
    """Write what harms nothing: that the process lives. Raises what the database raises when it
    takes no writes, or none of calls."""
    calls = Call._meta.db_table
    with transaction.atomic():
        RecorderLedger.objects.filter(name=name).update(seen_at=now)
        with connection.cursor() as cursor:
            # No row is one of these; a lock on the table is waited for, as a call would.
            cursor.execute(f"UPDATE {calls} SET status = status WHERE 1 = 0")


def settled_counts(name: str) -> LedgerCounts:
    """What the row of a process says, once whoever is writing it has ended. Zeros: there is none.

    Raises what the database raises when it is unavailable.
    """
    with transaction.atomic():
        rows = RecorderLedger.objects.select_for_update().filter(name=name)
        found = rows.values(*COUNTS).first()
    return LedgerCounts(**found) if found is not None else LedgerCounts()


def fold(*, now: datetime) -> None:
    """Add the rows of long ago up in one, so that restarts do not make the ledger grow for ever."""
    with transaction.atomic():
        ended = RecorderLedger.objects.filter(stopped_at__isnull=False).exclude(name=EARLIER)
        ids = list(ended.order_by("-started_at", "-id").values_list("id", flat=True)[KEPT_ROWS:])
        if not ids:
            return
        old = RecorderLedger.objects.filter(id__in=ids)
        # Locked, so that two processes that start at once do not both add them.
        summed = LedgerCounts()
        for values in list(old.select_for_update().values(*COUNTS)):
            summed += LedgerCounts(**values)
        started_at = old.aggregate(first=Min("started_at"))["first"]
        old.delete()
        row, _ = RecorderLedger.objects.get_or_create(
            name=EARLIER,
            defaults={"started_at": started_at, "seen_at": now, "stopped_at": now},
        )
        RecorderLedger.objects.filter(pk=row.pk).update(
            seen_at=now,
            stopped_at=now,
            **{name: F(name) + getattr(summed, name) for name in COUNTS},
        )


def close(*, name: str, began_at: datetime, in_flight_lost: int, now: datetime) -> None:
    """Close the row of a process that has ended: what waited there is accepted anew by its heir.

    in_flight_lost: calls that were under way there; 0 leaves what the row says. To close it again
    changes nothing. A process that never reached the database gets a row when it lost calls.
    """
    settled = F("stored") + F("duplicate") + F("rejected") + F("dropped")
    lost = {"in_flight_lost": in_flight_lost} if in_flight_lost else {}
    found = RecorderLedger.objects.filter(name=name).update(
        accepted=settled,
        waiting=0,
        spool_bytes=0,
        stopped_at=Coalesce(F("stopped_at"), now),
        **lost,
    )
    if not found and lost:
        RecorderLedger.objects.create(
            name=name, started_at=began_at, seen_at=began_at, stopped_at=now, **lost
        )
