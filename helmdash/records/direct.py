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
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import PipelineStatus

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


class Question(NamedTuple):
    """A query as `ask_by_key` takes it. is_one: it is prepared."""

    statement: str
    values: Sequence[Any]
    is_one: bool = True


# What `asked_ahead` has answers to, on the connection of this thread.
_ahead = threading.local()


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


def ask_prepared(statement: str, values: Sequence[Any]) -> list[Any]:
    """`ask`, by a statement that PostgreSQL need not plan each time: on a connection that stores,
    where it keeps the plan for PLANS_SECONDS.

    So it is to find one row by its key: a plan for any number of values (`= ANY`) may be one for
    many, which reads all of a project's rows."""
    return ask_by_key(statement, values, True)


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
    is_one: bool,
    *,
    of: BaseDatabaseWrapper | None = None,
) -> list[Any]:
    """`ask` for the rows of one key, which is prepared, or of several (`among`)."""
    database = of or connections[DEFAULT_DB_ALIAS]
    answers: list[tuple[Question, list[Any]]] | None = getattr(_ahead, "answers", None)
    if answers:
        asked = Question(statement, values, is_one)
        for place, (question, rows) in enumerate(answers):
            if question == asked:
                del answers[place]
                return rows
    if not (is_one and _prepares(database)):
        return ask(statement, values, of=database)
    with database.wrap_database_errors:
        return _prepared(database, statement, values).fetchall()


def can_ask_ahead() -> bool:
    """Whether `asked_ahead` asks anything on this thread's connection; connects."""
    return is_postgres() and _prepares(connections[DEFAULT_DB_ALIAS])


@contextmanager
def asked_ahead(questions: Sequence[Question]) -> Iterator[None]:
    """Ask all of them in one round trip. Within the block the first who asks one of them by
    `ask_by_key` has its answer at once.

    So nothing that the block does before may change an answer. Only where `can_ask_ahead`; raises
    what the database raises.
    """
    database = connections[DEFAULT_DB_ALIAS]
    driver = database.connection
    with database.wrap_database_errors:
        with driver.pipeline():
            cursors = [
                psycopg.Cursor(driver).execute(each.statement, each.values, prepare=each.is_one)
                for each in questions
            ]
        rows = [cursor.fetchall() for cursor in cursors]
    _ahead.answers = list(zip(questions, rows, strict=True))
    try:
        yield
    finally:
        _ahead.answers = None


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

    Not for what is sent together (records.bulk), which fails together.
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
    if is_pipeline(driver):
        raise RuntimeError("it would take the faults of what was sent before for its own")
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


def is_pipeline(driver: psycopg.Connection[Any]) -> bool:
    """Whether the connection sends statements without waiting for their answers."""
    return driver.pgconn.pipeline_status != PipelineStatus.OFF


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
