"""One process at a time sets up a data directory and a database.

Django's own part, which says what content types and permissions there are, bears no second one
beside it; nor do migrations, static files, and the first admin, who would be made twice.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

# Any number, as long as nobody else who uses the database has the same.
_LOCK = 0x48656C6E
_PAUSE_S = 0.1


@contextmanager
def set_up_alone(data_dir: Path, *, say_waiting: Callable[[], None]) -> Iterator[None]:
    """Wait until no other process sets up this directory or this database; then nobody else does.

    say_waiting: called once, where another one is at it. A lock of a process that dies is gone with
    it. Raises OSError and what the database raises when it is unavailable.
    """
    has_said = False

    def wait() -> None:
        nonlocal has_said
        if not has_said:
            has_said = True
            say_waiting()
        time.sleep(_PAUSE_S)

    with _directory(data_dir, wait), _database(wait):
        yield


@contextmanager
def _directory(data_dir: Path, wait: Callable[[], None]) -> Iterator[None]:
    handle = os.open(data_dir, os.O_RDONLY)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                wait()
            except OSError:
                break  # a file system without such locks
        yield
    finally:
        os.close(handle)


@contextmanager
def _database(wait: Callable[[], None]) -> Iterator[None]:
    """A transaction's lock, of a connection of its own: a session's would outlive us behind a
    pooler. Asked for again and again, since a role may say for how long it waits for a lock."""
    if connection.vendor != "postgresql":
        yield
        return
    own = connection.copy()
    try:
        own.set_autocommit(False)
        while not _has_lock(own):
            own.rollback()
            wait()
        yield
        # Where the server has ended what was idle for long, the lock is gone and the rest is done.
        with suppress(DatabaseError):
            own.rollback()
    finally:
        with suppress(DatabaseError):
            own.close()


def _has_lock(own: BaseDatabaseWrapper) -> bool:
    with own.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])
