"""Calls that wait to be exported, a row for each transaction and exporter.

An outbox: the row is written in the transaction that records the calls, so that a call is exported
if and only if it is recorded. It is deleted after the receiver has taken them; a process that ends
in between has them sent once more, with the same span ids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import F, Sum

from helmdash.operations.database.transactions import write
from helmdash.records.call_names import Place
from helmdash.records.models import Exporter, PendingExport
from helmdash.records.statements.bulk import is_sent_together
from helmdash.records.statements.direct import ask, tell_prepared

# Of calls that were recorded at once, and so of one request to a receiver.
_MOST_IN_ROW: Final = 500
# A receiver that is away for longer has lost interest; the rows would fill the disk.
KEPT: Final = timedelta(days=7)
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=10)
_PROBLEM_CHARS = 300
_WANTING = (
    f"FROM {Exporter._meta.db_table} WHERE enabled AND (project_id IS NULL OR project_id = %s)"
)
_WANTED = f"SELECT 1 {_WANTING} LIMIT 1"
_INSERT = (
    f"INSERT INTO {PendingExport._meta.db_table} (exporter_id, project_id, count, calls, at)"
    f" SELECT id, %s, %s, %s, %s {_WANTING}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One row: calls of a project, all of one transaction. later: those that were not taken now."""

    id: int
    project_id: int
    places: tuple[Place, ...]
    later: tuple[Place, ...] = ()


def note_recorded(project_id: int, rows: Sequence[Mapping[str, Any]], *, now: datetime) -> None:
    """The calls that this transaction records or completes, for every exporter that wants them.

    One statement for each five hundred calls, and one before them that asks whether there is an
    exporter; not where they are sent together, when no answer is to be waited for.
    """
    at = connection.ops.adapt_datetimefield_value(now)
    if not is_sent_together() and not ask(_WANTED, [project_id]):
        return
    for start in range(0, len(rows), _MOST_IN_ROW):
        some = rows[start : start + _MOST_IN_ROW]
        keys = _keys([Place(row["id"], row["started_at"]) for row in some])
        tell_prepared(_INSERT, [project_id, len(some), keys, at, project_id])


def is_any_due(now: datetime) -> bool:
    """Whether calls wait for an exporter that may be tried now, or for longer than KEPT for any,
    also for one that is switched off. Two queries at most."""
    if PendingExport.objects.filter(exporter__in=_due(now)).exists():
        return True
    # Rows are numbered as they are written: by the key the oldest one is found without a look at
    # the others, which this is asked every two seconds.
    oldest = PendingExport.objects.order_by("id").values_list("at", flat=True).first()
    return oldest is not None and oldest < now - KEPT


def due_exporters(now: datetime) -> tuple[Exporter, ...]:
    """Those for which calls wait and that may be tried now."""
    waiting = PendingExport.objects.values("exporter_id")
    return tuple(_due(now).filter(id__in=waiting).order_by("id"))


def take(exporter_id: int, *, most: int) -> tuple[Waiting, ...]:
    """The oldest rows of an exporter, of `most` calls together; so many of one that has more."""
    rows = PendingExport.objects.filter(exporter_id=exporter_id).order_by("id")
    taken: list[Waiting] = []
    count = 0
    for row in rows[:most].iterator(chunk_size=200):
        if taken and count + row.count > most:
            break
        places = tuple(
            Place(call_id, datetime.fromisoformat(at)) for call_id, at in json.loads(row.calls)
        )
        now, later = places[:most], places[most:]
        taken.append(Waiting(id=row.pk, project_id=row.project_id, places=now, later=later))
        count += row.count
    return tuple(taken)


def settle(
    exporter_id: int,
    taken: Sequence[Waiting],
    *,
    unanswered: Collection[tuple[int, Place]] = (),
    exported: int,
    refused: int,
    problem: str = "",
    now: datetime,
) -> None:
    """The receiver has answered for what was taken of these rows: it is gone, and counted.

    unanswered: but for these calls, each with its project: they go on waiting. problem: why it
    refused some, in its words.
    """
    kept = {each.id: _unanswered_of(each, unanswered) for each in taken}

    def work() -> None:
        over = [number for number, places in kept.items() if not places]
        PendingExport.objects.filter(id__in=over).delete()
        for number, places in kept.items():
            if places:
                rows = PendingExport.objects.filter(id=number)
                rows.update(count=len(places), calls=_keys(places))
        Exporter.objects.filter(pk=exporter_id).update(
            exported=F("exported") + exported,
            refused=F("refused") + refused,
            exported_at=now,
            failures=0,
            next_try_at=None,
            latest_problem=problem[:_PROBLEM_CHARS],
        )

    write(work)


def note_failure(
    exporter_id: int,
    problem: str,
    *,
    failures: int,
    now: datetime,
    retry_after_s: float | None = None,
) -> None:
    """A try came to nothing, after `failures` others: the next one waits twice as long, or as the
    receiver asked."""
    wait = min(_FIRST_WAIT * 2 ** min(failures, 16), _LONGEST_WAIT)
    if retry_after_s is not None:
        asked = min(retry_after_s, _LONGEST_WAIT.total_seconds())  # it may ask for centuries
        wait = max(wait, timedelta(seconds=asked))
    rows = Exporter.objects.filter(pk=exporter_id)
    write(
        lambda: rows.update(
            failures=F("failures") + 1,
            next_try_at=now + wait,
            latest_problem=problem[:_PROBLEM_CHARS],
        )
    )


def give_up_old(*, now: datetime) -> int:
    """Calls that have waited for longer than KEPT are counted as refused; how many."""

    def work() -> int:
        old = PendingExport.objects.filter(at__lt=now - KEPT)
        counted = list(old.values("exporter_id").annotate(calls=Sum("count")).order_by())
        for each in counted:
            rows = Exporter.objects.filter(pk=each["exporter_id"])
            rows.update(refused=F("refused") + each["calls"])
        if counted:
            old.delete()
        return sum(each["calls"] for each in counted)

    return write(work)


def _unanswered_of(row: Waiting, unanswered: Collection[tuple[int, Place]]) -> tuple[Place, ...]:
    now = tuple(place for place in row.places if (row.project_id, place) in unanswered)
    return now + row.later


def _keys(places: Sequence[Place]) -> str:
    return json.dumps([[place.call_id, place.started_at.isoformat()] for place in places])


def _due(now: datetime) -> Any:
    open_now = Exporter.objects.filter(enabled=True)
    # What is to be tried later than anything is put off was noted before the clock was set back.
    return open_now.exclude(next_try_at__gt=now, next_try_at__lte=now + 2 * _LONGEST_WAIT)
