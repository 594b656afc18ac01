"""The SQLite file: kept open between requests, and never made by a server.

Django opens a connection for each request and closes it afterwards. When the last one closes,
SQLite copies its log into the database file, waits for the disk and deletes the log: several
milliseconds after each request of a server with little to do. One idle connection that stays
prevents that; it holds no lock that anybody waits for.

Somebody may take the file away while we serve (a restore, a disk that is moved) and put it back.
A connection opened in between would make an empty file, and read the old file's log into it. So a
server opens only a file that is there, and before it writes it looks whether the file at the path
is still the one that it has open. Closing connections to a file that is not at its path is safe:
SQLite sees that and leaves the log as it is.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db import Error as DatabaseFault
from django.db.backends.base.base import BaseDatabaseWrapper

from helmdash.operations.database import rule_sets
from helmdash.records.statements.direct import is_postgres, sqlite_driver

_held: dict[str, tuple[sqlite3.Connection, tuple[int, int]]] = {}
_holding = threading.RLock()
_URI = "file:"
_EXISTING = "?mode=rw"


class DatabaseFileGone(OperationalError):
    """The SQLite file is not at its path, or another one is: the database is unavailable."""


def database_file() -> Path | None:
    """Where the SQLite file is; None on PostgreSQL and in memory."""
    return None if is_postgres() else _file_of(str(connection.settings_dict["NAME"]))


# Asked before each group of calls that is stored.
@lru_cache(maxsize=16)
def _file_of(name: str) -> Path | None:
    """What a name of the settings stands for; None: memory."""
    if ":memory:" in name or "mode=memory" in name:
        return None
    if name.startswith(_URI):
        return Path(unquote(name.removeprefix(_URI).split("?", 1)[0]))
    return Path(name)


def open_only_existing() -> None:
    """From now on this process opens the SQLite file only where there is one.

    Changes the settings that every thread's connection is made from; for a process that serves.
    """
    path = database_file()
    if path is not None:
        connection.settings_dict["NAME"] = existing(path)


def existing(path: Path) -> str:
    """The SQLite name that opens a file where there is one, and fails where there is none."""
    return f"{_URI}{quote(str(path))}{_EXISTING}"


def hold_database_open() -> None:
    """Open one more connection for as long as this process lives. Does nothing on PostgreSQL.

    Where it holds another file than the one at the path, it lets go of that one first.
    """
    path = database_file()
    if path is not None:
        with _holding:
            _hold(path)


def _hold(path: Path) -> None:
    held = _held.get(str(path))
    found = identity(path)
    if held is not None and held[1] != found:
        _held.pop(str(path))[0].close()
        held = None
    if held is not None or found is None:
        return
    name = existing(path)
    handle = sqlite3.connect(name, uri=True, check_same_thread=False, isolation_level=None)
    # Only a connection that has read something takes part in the log.
    handle.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    _held[str(path)] = (handle, found)


def let_database_close() -> None:
    """Close the connections of `hold_database_open`, so that the file can go or be replaced."""
    with _holding:
        while _held:
            _held.popitem()[1][0].close()


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at the path; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def writes_seen() -> tuple[int, int] | None:
    """A value that changes when anybody but this thread's open connection has written, in whatever
    process; None on PostgreSQL, which does not tell. Costs a look into shared memory."""
    if is_postgres():
        return None
    with sqlite_driver() as driver:
        ((version,),) = driver.execute("PRAGMA data_version").fetchall()
        return id(driver), version


class FileWatch:
    """Keeps one thread's connection on the file that is at the path."""

    def __init__(self) -> None:
        self._opened: tuple[int, int] | None = None

    def check(self) -> None:
        """Connect, or make sure that the open connection is to the file at the path.

        Raises DatabaseFileGone, with the connection closed, when it is not, and what the database
        raises when it is unavailable. Does nothing but connect on PostgreSQL.
        """
        path = database_file()
        if path is None:
            connection.ensure_connection()
            return
        found = identity(path)
        if connection.connection is not None and found == self._opened:
            return
        had_one = connection.connection is not None
        connection.close()
        self._opened = None
        if found is None:
            let_database_close()
            raise DatabaseFileGone("there is no database file at its path")
        if had_one:
            let_database_close()
            rule_sets.forget()
            raise DatabaseFileGone("another database file has taken the place of the old one")
        with connection.wrap_database_errors:
            hold_database_open()
        connection.ensure_connection()
        if identity(path) != found:
            connection.close()
            raise DatabaseFileGone("the database file was moved")
        self._opened = found


_own = threading.local()


@contextmanager
def thread_connection() -> Iterator[None]:
    """A block of database work in a thread that is no request's: the connection is checked, kept on
    SQLite, and given back on PostgreSQL.

    Raises what `FileWatch.check` raises. A connection that broke does not stay.
    """
    watch: FileWatch | None = getattr(_own, "watch", None)
    if watch is None:
        watch = _own.watch = FileWatch()
    try:
        watch.check()
        yield
    except DatabaseFault:
        connection.close()
        raise
    finally:
        give_back()


def commit_without_waiting() -> None:
    """From now on this thread's commits do not wait for the disk, on SQLite.

    For what a power cut may take away without harm: where remediation stood before one call, which
    the next call finds out again. The file stays whole, and whoever commits next and waits brings
    these commits to the disk too. PostgreSQL's connections are shared, and stay as they are.
    """
    connection.ensure_connection()
    if connection.vendor == "sqlite" and getattr(_own, "hasty", None) is not connection.connection:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=NORMAL")
        _own.hasty = connection.connection


def give_back() -> None:
    """Give this thread's connection back to PostgreSQL's pool. SQLite's costs more to open than to
    keep, and stays until the thread ends."""
    if connection.vendor != "sqlite":
        connection.close()
    elif getattr(_own, "kept", None) is None and not _is_main_thread():
        _own.kept = _Kept(connections[DEFAULT_DB_ALIAS])


class _Kept:
    """A thread's connection, closed by the thread as its last act: what is local to it goes then.

    Pools have no other word for a thread of theirs that ends. Left to the garbage collector, an
    open connection stays until some other thread happens to look, and Python warns.
    """

    def __init__(self, kept: BaseDatabaseWrapper) -> None:
        self._kept = kept

    def __del__(self) -> None:
        # Not by Django's close(): where something still held what was the thread's, the collector
        # lets go of it on any thread, and Django closes on no other and on none with an event loop.
        opened, self._kept.connection = self._kept.connection, None
        if opened is not None:
            opened.close()


def _is_main_thread() -> bool:
    """It ends with the interpreter, when there is little left to close anything with."""
    return threading.current_thread() is threading.main_thread()
