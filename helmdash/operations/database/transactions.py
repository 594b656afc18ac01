"""Write transactions, safe among concurrent writers.

On PostgreSQL writers lock the rows they number by; on SQLite a transaction takes the write lock at
its start. Two writers that bring the same row at once meet at a unique constraint; the later one
starts again and finds it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import DatabaseError, OperationalError, transaction

from helmdash.operations.database import timeouts
from helmdash.records.statements import partitions
from helmdash.records.statements.direct import is_postgres
from helmdash.records.statements.exchanges import STALE

Result = TypeVar("Result")

# Two writers that meet start again. Each meeting settles at least one id or conversation, so that
# many in a row happen only to large batches of repeats that several writers send at once.
ATTEMPTS = 10
# Longer than SQLite's busy handler sleeps between two tries.
_MOST_PAUSE_S = 0.15
# unique_violation, deadlock_detected, serialization_failure
_COLLISIONS = frozenset({"23505", "40P01", "40001"})
# SQLite has one writer; waiting in line here is fair, its own busy handler is not.
_sqlite_writer = threading.Lock()


class Collision(Exception):
    """Another writer took away what this one had just found; starting again finds the truth."""


def write(work: Callable[[], Result]) -> Result:
    """Run `work` in one write transaction, anew when another writer was first.

    Raises what the database raises when it is unavailable, or when that happens too often in a row.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with writer_lock(), transaction.atomic():
                return work()
        except (Collision, DatabaseError) as error:
            if attempt == ATTEMPTS or not _is_collision(error):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def write_and_pause(work: Callable[[], Result]) -> Result:
    """A step of many: `write`, after which others have as long as it took to write themselves.

    SQLite's lock goes to whoever asks when it is free, and who waits asks now and then: steps that
    follow each other at once keep everybody out until the last.
    """
    began = time.monotonic()
    done = write(work)
    if not is_postgres():
        time.sleep(min(time.monotonic() - began, _MOST_PAUSE_S))
    return done


@contextmanager
def writer_lock() -> Iterator[None]:
    """Hold the lock of this process's one writer on SQLite; does nothing on PostgreSQL.

    Raises OperationalError where it is not free within `timeouts.writer_lock_timeout_s`.
    """
    if is_postgres():
        yield
        return
    if not _sqlite_writer.acquire(timeout=timeouts.writer_lock_timeout_s()):
        raise OperationalError("database is locked: another writer holds it")
    try:
        yield
    finally:
        _sqlite_writer.release()


def _is_collision(error: Exception) -> bool:
    """True when another writer was first (same id), the database broke a deadlock, the month of a
    row was dropped meanwhile, or a migration made stale what was prepared.

    SQLite lets one writer in at a time: there an error of integrity is never one of these.
    """
    if isinstance(error, Collision) or partitions.is_missing(error):
        return True
    return getattr(error.__cause__, "sqlstate", None) in _COLLISIONS | STALE
