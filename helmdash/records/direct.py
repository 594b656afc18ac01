"""Statements of recording, given to SQLite's driver without what Django does around each.

A cursor of Django's asks for its thread, its settings and its log, and words a statement anew each
time it is carried out: some twenty microseconds, for each of the twenty statements that one call
takes. On PostgreSQL, and where somebody counts or wraps statements (tests, `DEBUG`), they go
Django's way. Inside of a transaction of Django's as well as out of one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper


@cache
def is_postgres() -> bool:
    """Whether the usual connection is to PostgreSQL: the same for as long as a process lives.

    To find this thread's connection and ask it takes some microseconds, and storing one call asks
    dozens of times.
    """
    return connections[DEFAULT_DB_ALIAS].vendor == "postgresql"


@contextmanager
def sqlite_driver() -> Iterator[sqlite3.Connection]:
    """SQLite's own connection of this thread, whose errors are raised as Django's."""
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    database.validate_no_broken_transaction()
    with database.wrap_database_errors:
        yield database.connection


def ask(
    statement: str, values: Sequence[Any], *, of: BaseDatabaseWrapper | None = None
) -> list[Any]:
    """All rows that a query finds. of: the database that is asked; None: the usual one.

    statement: with `%s` for each value. Raises what Django's cursors raise.
    """
    database = of or connections[DEFAULT_DB_ALIAS]
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())
    with database.wrap_database_errors:
        return list(database.connection.execute(_for_sqlite(statement), values))


def tell(statement: str, values: Sequence[Any]) -> None:
    """Carry out a statement that gives nothing back. Raises what Django's cursors raise."""
    database = connections[DEFAULT_DB_ALIAS]
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.execute(statement, values)
        return
    with database.wrap_database_errors:
        database.connection.execute(_for_sqlite(statement), values)


def change(statement: str, values: Sequence[Any]) -> int:
    """Carry out an UPDATE or a DELETE; gives how many rows it changed. Raises as `tell` does."""
    database = connections[DEFAULT_DB_ALIAS]
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.execute(statement, values)
            return int(cursor.rowcount)
    with database.wrap_database_errors:
        return int(database.connection.execute(_for_sqlite(statement), values).rowcount)


def tell_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Carry a statement out for each of the rows; nothing without any."""
    if not rows:
        return
    database = connections[DEFAULT_DB_ALIAS]
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.executemany(statement, rows)
        return
    with database.wrap_database_errors:
        database.connection.executemany(_for_sqlite(statement), rows)


def _is_direct(database: BaseDatabaseWrapper) -> bool:
    """Whether nobody but the driver need see a statement; connects."""
    if database.vendor != "sqlite" or database.queries_logged or database.execute_wrappers:
        return False
    # Asked here: what Django does to find both in order takes longer than all of the above.
    if database.connection is None:
        database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    return True


# A statement is worded once for each shape of rows, so these are as few.
@cache
def _for_sqlite(statement: str) -> str:
    return statement.replace("%s", "?").replace("%%", "%")
