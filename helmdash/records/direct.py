"""Statements of recording, given to the database's driver without what Django does around each.

A cursor of Django's asks for its thread, its settings and its log, and words a statement anew each
time it is carried out: some twenty microseconds on SQLite, for each of the twenty statements that
one call takes. PostgreSQL reads and plans what Django sends it each time anew, which is half of its
work for one call: what says so is prepared there once for a connection (ADR 71). Where somebody
counts or wraps statements (tests, `DEBUG`), they go Django's way. Inside of a transaction of
Django's as well as out of one.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

# A connection of a thread that stores has this as psycopg's `prepare_threshold`: it prepares what
# says so, and nothing because it was asked often.
PREPARED_WHERE_SAID = 1_000_000_000
_APART = "SAVEPOINT apart", "RELEASE SAVEPOINT apart", "ROLLBACK TO SAVEPOINT apart"
# For so long PostgreSQL keeps the plans of what is prepared. It would keep one until the table is
# analyzed, and one for a table of a single page is to read all of it: that of some four thousand
# calls by then. To plan everything anew takes three milliseconds.
PLANS_SECONDS = 2.0
# Connections of which it is known that no pooler is in between, and when each last planned anew.
_planned_at: WeakKeyDictionary[psycopg.Connection[Any], float] = WeakKeyDictionary()


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


def tell(statement: str, values: Sequence[Any], *, of: BaseDatabaseWrapper | None = None) -> None:
    """Carry out a statement that gives nothing back. Raises what Django's cursors raise. of: as of
    `ask`."""
    database = of or connections[DEFAULT_DB_ALIAS]
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.execute(statement, values)
        return
    with database.wrap_database_errors:
        database.connection.execute(_for_sqlite(statement), values)


def ask_prepared(
    statement: str, values: Sequence[Any], *, of: BaseDatabaseWrapper | None = None
) -> list[Any]:
    """`ask`, by a statement that PostgreSQL need not plan each time: on a connection that stores,
    where it keeps the plan for PLANS_SECONDS.

    So it is to find one row by its key: a plan for any number of values (`= ANY`) may be one for
    many, which reads all of a project's rows."""
    database = of or connections[DEFAULT_DB_ALIAS]
    if not _prepares(database):
        return ask(statement, values, of=database)
    with database.wrap_database_errors:
        return _prepared(database, statement, values).fetchall()


def among(values: Sequence[Any]) -> tuple[str, Any]:
    """The end of a condition, that a column holds one of the values, and what it takes: the same
    for any number of them but one, which a statement that is prepared can find."""
    if len(values) == 1:
        return "= %s", values[0]
    if is_postgres():
        return "= ANY(%s)", list(values)
    return "IN (SELECT value FROM json_each(%s))", json.dumps(list(values))


def ask_by_key(
    statement: str,
    values: Sequence[Any],
    *,
    is_one: bool,
    of: BaseDatabaseWrapper | None = None,
) -> list[Any]:
    """`ask` for the rows of one key, which is prepared, or of several (`among`)."""
    return (ask_prepared if is_one else ask)(statement, values, of=of)


def tell_prepared(statement: str, values: Sequence[Any]) -> None:
    """`tell`, by a statement that PostgreSQL need not plan each time (see `ask_prepared`). It says
    what type a value is where no column does."""
    database = connections[DEFAULT_DB_ALIAS]
    if not _prepares(database):
        tell(statement, values, of=database)
        return
    with database.wrap_database_errors:
        _prepared(database, statement, values)


def change_apart(statement: str, values: Sequence[Any]) -> int:
    """Carry out an UPDATE or a DELETE; gives how many rows it changed. Where it fails, the
    transaction goes on without it.

    On SQLite a statement that fails has done nothing. Elsewhere it takes a savepoint, which is made
    and let go of in one round trip. Raises what Django's cursors raise.
    """
    database = connections[DEFAULT_DB_ALIAS]
    if _is_direct(database):
        with database.wrap_database_errors:
            return int(database.connection.execute(_for_sqlite(statement), values).rowcount)
    if not (database.in_atomic_block and _prepares(database)):
        with transaction.atomic(), database.cursor() as cursor:
            cursor.execute(statement, values)
            return int(cursor.rowcount)
    driver, (begin, end, undo) = database.connection, _APART
    with database.wrap_database_errors:
        try:
            with driver.pipeline():
                driver.execute(begin)
                changed = _prepared(database, statement, values)
                driver.execute(end)
        except psycopg.Error:
            with suppress(psycopg.Error):
                driver.execute(undo)
            raise
    return int(changed.rowcount)


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


def _prepares(database: BaseDatabaseWrapper) -> bool:
    """Whether statements that say so are prepared on this connection; connects.

    Not behind a pooler, which may give each transaction another connection of the server's. Such a
    one shows in the process that a connection was told is its own, and that is not.
    """
    if database.vendor != "postgresql" or database.queries_logged or database.execute_wrappers:
        return False
    database.ensure_connection()
    database.validate_no_broken_transaction()
    driver = database.connection
    if driver.prepare_threshold is None:
        return False
    now, planned_at = time.monotonic(), _planned_at.get(driver)
    if planned_at is None:
        ((process,),) = driver.execute("SELECT pg_backend_pid()").fetchall()
        if process != driver.info.backend_pid:
            driver.prepare_threshold = None
            return False
        _planned_at[driver] = now
    elif now - planned_at > PLANS_SECONDS:
        driver.execute("DISCARD PLANS")
        _planned_at[driver] = now
    return True


def _prepared(
    database: BaseDatabaseWrapper, statement: str, values: Sequence[Any]
) -> psycopg.Cursor[Any]:
    """The cursor that has carried it out. Not of the connection's own class: Django's binds values
    by writing them into the statement."""
    return psycopg.Cursor(database.connection).execute(statement, values, prepare=True)


# A statement is worded once for each shape of rows, so these are as few.
@cache
def _for_sqlite(statement: str) -> str:
    return statement.replace("%s", "?").replace("%%", "%")
