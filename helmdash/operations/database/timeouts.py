"""Timeouts around the database: for those who must answer also while it is unavailable.

A server that answers people and programs promises an answer within five seconds, whatever the
database does (`limit_lock_waits`); a command may wait for as long as it likes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from typing import TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from helmdash.operations.database.sqlite_file import database_file
from helmdash.records.models import Project

T = TypeVar("T")

# Two questions in a row are still answered within a second.
DEFAULT_TIMEOUT_S = 0.45
# In a server: how long a writer waits for its turn in this process, and then for another process
# that holds the lock (of SQLite, or of a row or table). Together less than the promised five.
_WRITER_LOCK_TIMEOUT_S = 2.0
_LOCK_TIMEOUT_S = 2.4
# Threads that wait for a database or a disk that does not respond; each ends when the pool, the
# network or the system gives up.
_MOST_WAITING = 4
_slots = {
    about: threading.BoundedSemaphore(_MOST_WAITING) for about in ("database", "disk", "pulse")
}

_SIMPLE = f"SELECT 1 FROM {Project._meta.db_table} LIMIT 1"
_writer_lock_timeout_s = -1.0  # for as long as it takes


def limit_lock_waits() -> None:
    """From now on nobody in this process waits long for a lock.

    Changes the settings that every thread's connection is made from.
    """
    global _writer_lock_timeout_s
    _writer_lock_timeout_s = _WRITER_LOCK_TIMEOUT_S
    options = connection.settings_dict["OPTIONS"]
    if connection.vendor == "sqlite":
        options["timeout"] = _LOCK_TIMEOUT_S
        return
    limit = f"-c lock_timeout={round(_LOCK_TIMEOUT_S * 1000)}"
    said = str(options.get("options", ""))
    if limit not in said:
        options["options"] = f"{said} {limit}".strip()
        connection.close()
        # Made anew with these settings at its next use.
        connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it


def writer_lock_timeout_s() -> float:
    """How long a writer waits for its turn in this process; -1: for as long as it takes."""
    return _writer_lock_timeout_s


class DatabaseNotResponding(OperationalError):
    """The database did not answer in time."""

    def __init__(self) -> None:
        super().__init__("the database does not respond")


def with_timeout(
    question: Callable[[], T], *, seconds: float = DEFAULT_TIMEOUT_S, about: str = "database"
) -> T:
    """What the question gives or raises; DatabaseNotResponding when that takes more than `seconds`.

    The question runs in a thread and on a connection of its own, and may go on there afterwards.
    Inside a transaction, which no other connection sees into, and on a database in memory it runs
    here.
    """
    if connection.in_atomic_block or _is_in_memory():
        return question()
    slot = _slots[about]
    if not slot.acquire(blocking=False):
        raise DatabaseNotResponding
    answer: Future[T] = Future()
    # A daemon, so that a server that stops does not wait for a host that never answers.
    work = (question, answer, slot)
    threading.Thread(target=_ask, args=work, name="with-timeout", daemon=True).start()
    try:
        return answer.result(seconds)
    except WaitedTooLong:
        # Also what the question itself raises; that it was not in time is true all the same.
        raise DatabaseNotResponding from None


def is_answering(*, seconds: float = 0.8) -> bool:
    """Whether the database answers something simple, on a connection of its own beside the pool."""
    try:
        with_timeout(_ping, seconds=seconds, about="pulse")
    except (DatabaseError, InterfaceError):
        return False
    return True


def connection_beside_pool(alias: str = DEFAULT_DB_ALIAS) -> BaseDatabaseWrapper:
    """A connection that no pool knows; whoever asks for it closes it."""
    own = connections.create_connection(alias)
    settings = dict(own.settings_dict)
    options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
    own.settings_dict = {**settings, "OPTIONS": options}
    return own


def _ping() -> None:
    own = connection_beside_pool()
    try:
        with own.cursor() as cursor:
            # Of a table: SQLite opens its file for nothing less.
            cursor.execute(_SIMPLE)
            cursor.fetchall()
    finally:
        own.close()


def _is_in_memory() -> bool:
    return connection.vendor == "sqlite" and database_file() is None


def _ask(question: Callable[[], T], answer: Future[T], slot: threading.BoundedSemaphore) -> None:
    try:
        try:
            found = question()
        finally:
            connections.close_all()
    except BaseException as error:
        answer.set_exception(error)
    else:
        answer.set_result(found)
    finally:
        slot.release()
