"""Dropping whole months of calls, where every project that has calls of it keeps them no longer.

A partition goes in a moment and gives its disk back, whatever it holds; where one project keeps its
calls, those of the others go in bounded steps (`expired`). SQLite has no partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db import OperationalError, connection
from django.db.models import Q

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.database.transactions import write
from helmdash.operations.rollups import noting
from helmdash.records.call_names import delete_names_of
from helmdash.records.models import Project
from helmdash.records.statements import partitions

logger = logging.getLogger(__name__)

# A recorder that has to wait for longer counts the database as unavailable.
_LOCK_WAIT = "1s"
# Names that one step looks at: some tens of milliseconds.
_BATCH_NAMES = 20_000


def drop_expired_months(*, actor: Actor, now: datetime) -> tuple[str, ...]:
    """Drop what no project keeps any more; gives the dropped months, as their partitions are named.

    A month that somebody reads for longer stays until the next time. Nothing on SQLite. Raises
    Forbidden: it takes the right to erase in every project.
    """
    require(actor, Right.ERASE, project_id=None)
    kept = dict(Project.objects.values_list("pk", "retention_days"))
    lines = {pk: None if days is None else now - timedelta(days=days) for pk, days in kept.items()}
    dropped: list[str] = []
    for month in partitions.existing():
        end = partitions.month_after(month)
        going = {pk for pk, line in lines.items() if line is not None and line >= end}
        try:
            is_dropped = bool(going) and write(partial(_drop, month, going))
        except OperationalError as error:
            if not _is_waiting(error):
                raise
            logger.warning("calls are being read for long: a month of them is dropped later")
            break
        if is_dropped:
            dropped.append(partitions.partition_of("", month).strip("_"))
    if dropped:
        _forget_names(lines)
    return tuple(dropped)


def _drop(month: partitions.Month, going: set[int]) -> bool:
    """Drop a month unless a call of another project is in it."""
    # Asked before anybody has to wait, and again when nobody can write.
    if _is_kept(month, going):
        return False
    # Before the lock: who rebuilds has this one, and reads calls then.
    for project_id in sorted(going):
        noting.note_retained(project_id, partitions.month_after(month))
    with connection.cursor() as cursor:
        # All who come after wait as well, as long as this waits for one who reads.
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'")
        cursor.execute(f"LOCK TABLE ONLY {partitions.TABLES[0]} IN ACCESS EXCLUSIVE MODE")
        if _is_kept(month, going):
            return False
        for table in reversed(partitions.TABLES):
            cursor.execute(f"DROP TABLE IF EXISTS {partitions.partition_of(table, month)}")
    partitions.forget()
    return True


def _is_kept(month: partitions.Month, going: set[int]) -> bool:
    """Whether a project that keeps them, or is new, has calls in a month. For each project the one
    place in the index where its calls would be, instead of a look at all that are going."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM records_project p CROSS JOIN LATERAL (SELECT c.id"
            f" FROM {partitions.partition_of(partitions.TABLES[0], month)} c"
            # The order leads a planner to the index, whatever it was told of the table.
            " WHERE c.project_id = p.id ORDER BY c.started_at LIMIT 1) kept"
            " WHERE NOT p.id = ANY(%s))",
            [sorted(going)],
        )
        return bool(cursor.fetchone()[0])


def _is_waiting(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) == "55P03"  # lock_not_available


def _forget_names(lines: Mapping[int, datetime | None]) -> None:
    """Of calls that are gone with their month; in steps, so that others write in between."""
    there = Q()
    for month in partitions.existing():
        since = Q() if month is None else Q(started_at__gte=month)
        there |= since & Q(started_at__lt=partitions.month_after(month))
    for project_id, line in lines.items():
        after: str | None = "" if line is not None else None
        while line is not None and after is not None:
            gone = Q(started_at__lt=line) & ~there
            after = write(partial(delete_names_of, project_id, gone, after, _BATCH_NAMES))
