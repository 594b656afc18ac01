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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakSet

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from helmdash.records.statements.exchanges import Answer, Exchange, Statement, exchange

# A connection of a thread that stores has this as psycopg's `prepare_threshold`: it prepares what
# says so, and nothing because it was asked often.
PREPARED_WHERE_SAID = 1_000_000_000
_APART, _APART_DONE = Statement("SAVEPOINT apart"), Statement("RELEASE SAVEPOINT apart")
_COMMIT = Statement("COMMIT")
# Connections of which it is known that no pooler is in between.
_unpooled: WeakSet[psycopg.Connection[Any]] = WeakSet()


class Question(NamedTuple):
    """A query as `ask_prepared` takes it."""

    statement: str
    values: Sequence[Any]


class _AskedAhead(NamedTuple):
    question: Question
    rows: list[Any]
    lasts: bool


# Without slots, which all threads would share.
@dataclass
class _Here(threading.local):
    """What this thread has under way. answers: to what was asked ahead. together: what is told, and
    answered at once. own: its connection, where it stores."""

    answers: list[_AskedAhead] | None = None
    together: _Together | None = None
    own: BaseDatabaseWrapper | None = None


_here = _Here()


def store_by(own: BaseDatabaseWrapper) -> None:
    """This thread stores, and its usual connection is this one for as long as it lives.

    Django finds a thread's connection in a microsecond or two, and one call asks thirty times.
    """
    connections[DEFAULT_DB_ALIAS] = own
    _here.own = own


def _usual() -> BaseDatabaseWrapper:
    return _here.own or connections[DEFAULT_DB_ALIAS]


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
    database = _usual()
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
    database = of or _usual()
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())
    with database.wrap_database_errors:
        return list(database.connection.execute(_for_sqlite(statement), values))


def tell(statement: str, values: Sequence[Any], *, of: BaseDatabaseWrapper | None = None) -> None:
    """Carry out a statement that gives nothing back. Raises what Django's cursors raise. of: as of
    `ask`."""
    database = of or _usual()
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
    where it keeps the plan for a while (records.statements.exchanges).

    So it is to find its rows by their keys, whatever these are. `= ANY` does not say so: a plan for
    any number of values may read all of a project's rows (`each_of`).
    """
    database = of or _usual()
    if answers := _here.answers:
        asked = Question(statement, values)
        for place, answer in enumerate(answers):
            if answer.question == asked:
                del answers[place]
                return answer.rows
    if not _prepares(database):
        return ask(statement, values, of=database)
    if _here.together is not None:
        _here.together.end()
    (told,) = _exchange(database, [Statement(statement, values, is_prepared=True)])
    return told.rows


def each_of(
    columns: str,
    table: str,
    where: str,
    given: Sequence[Any],
    *,
    key: str,
    values: Sequence[str],
) -> Question:
    """The rows of a table that a condition with its values leaves, and whose text column `key` is
    one of some values: the same statement for any number of them but one.

    PostgreSQL looks each up by itself (OFFSET keeps a planner from another way).
    """
    found = f"SELECT {columns} FROM {table} WHERE {where} AND {key}"
    if len(values) == 1:
        return Question(f"{found} = %s", [*given, values[0]])
    if not is_postgres():
        one_of = "IN (SELECT value FROM json_each(%s))"
        return Question(f"{found} {one_of}", [*given, json.dumps(list(values))])
    wanted = "(SELECT unnest(%s::text[]) AS wanted) w"
    each = f"SELECT * FROM {table} WHERE {where} AND {key} = w.wanted OFFSET 0"
    statement = f"SELECT {columns} FROM {wanted} CROSS JOIN LATERAL ({each}) found"
    return Question(statement, [list(values), *given])


def can_ask_ahead() -> bool:
    """Whether `asked_ahead` asks anything on this thread's connection; connects."""
    return is_postgres() and _prepares(_usual())


@contextmanager
def asked_ahead(
    questions: Sequence[Question], *, lasting: Sequence[Question] = ()
) -> Iterator[None]:
    """Ask all of them in one round trip. Within the block the first who asks one of them by
    `ask_prepared` has its answer at once.

    So nothing that the block does before may change an answer. lasting: those whose answers no
    other writer can make wrong (`forget_asked_ahead`). Only where `can_ask_ahead`; raises what the
    database raises.
    """
    asked = [*questions, *lasting]
    statements = [Statement(each.statement, each.values, is_prepared=True) for each in asked]
    answers = _exchange(_usual(), statements)
    _here.answers = [
        _AskedAhead(question, told.rows, place >= len(questions))
        for place, (question, told) in enumerate(zip(asked, answers, strict=True))
    ]
    try:
        yield
    finally:
        _here.answers = None


def forget_asked_ahead() -> None:
    """What was asked ahead, and nobody has had the answer to, is asked anew where it does not last:
    another writer was waited for since."""
    if _here.answers:
        _here.answers = [each for each in _here.answers if each.lasts]


class _Together:
    """Statements whose answers come at once. Django calls it before one that goes its way: what was
    told before that is answered before."""

    def __init__(self, database: BaseDatabaseWrapper) -> None:
        self._database = database
        self._under_way: Exchange | None = None

    def __call__(self, execute: Callable[..., Any], *given: Any) -> Any:
        self.end()
        return execute(*given)

    def add(self, statement: Statement) -> None:
        """Sent now, so that the database does it while the next one is made."""
        with self._database.wrap_database_errors:
            if self._under_way is None:
                self._under_way = Exchange(self._database.connection)
            self._under_way.send([statement])

    def end(self, *last: Statement) -> list[Answer]:
        """Have the answers to what was added, and to what comes last."""
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return _exchange(self._database, last) if last else []
        try:
            with self._database.wrap_database_errors:
                return under_way.end(last)
        finally:
            under_way.break_off()

    def break_off(self) -> None:
        """Have the connection back, where something failed before the end."""
        if self._under_way is not None:
            self._under_way.break_off()


@contextmanager
def told_together(*, ends: bool = False) -> Iterator[None]:
    """What the block tells by `tell_prepared` is answered at its end, in one round trip, and fails
    there. Only where `can_ask_ahead`.

    ends: with the block the transaction is over, and is committed in the same round trip, unless it
    is within another one; nothing may fail between this and the end of Django's transaction.
    Raises what the database raises.
    """
    database = _usual()
    together = _here.together = _Together(database)
    try:
        with database.execute_wrapper(together):
            yield
        if not ends or database.savepoint_ids:
            together.end()
        elif (told := together.end(_COMMIT)[-1].tag) != _COMMIT.text:
            # It is no fault to it that a broken transaction is rolled back.
            raise DatabaseError(f"COMMIT was answered by {told}")
    finally:
        together.break_off()
        _here.together = None


def is_told_together() -> bool:
    """Within `told_together`."""
    return _here.together is not None


def tell_prepared(statement: str, values: Sequence[Any]) -> None:
    """`tell`, by a statement that PostgreSQL need not plan each time (see `ask_prepared`). It says
    what type a value is where no column does."""
    database = _usual()
    if not _prepares(database):
        tell(statement, values, of=database)
        return
    told = Statement(statement, values, is_prepared=True)
    if _here.together is not None:
        _here.together.add(told)
    else:
        _exchange(database, [told])


def change_apart(statement: str, values: Sequence[Any]) -> int:
    """Carry out an UPDATE or a DELETE; gives how many rows it changed. Where it fails, the
    transaction goes on without it.

    On SQLite a statement that fails has done nothing. Elsewhere it takes a savepoint, which is made
    and let go of in one round trip. Raises what Django's cursors raise.

    Not for what is told together, which fails together.
    """
    database = _usual()
    if _is_direct(database):
        with database.wrap_database_errors:
            return int(database.connection.execute(_for_sqlite(statement), values).rowcount)
    if not (database.in_atomic_block and _prepares(database)):
        with transaction.atomic(), database.cursor() as cursor:
            cursor.execute(statement, values)
            return int(cursor.rowcount)
    told = Statement(statement, values, is_prepared=True)
    try:
        answers = _exchange(database, [_APART, told, _APART_DONE])
    except DatabaseError:
        with suppress(psycopg.Error):
            database.connection.execute("ROLLBACK TO SAVEPOINT apart")
        raise
    return answers[1].changed


def tell_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Carry a statement out for each of the rows; nothing without any."""
    if not rows:
        return
    database = _usual()
    if not _is_direct(database):
        with database.cursor() as cursor:
            cursor.executemany(statement, rows)
        return
    with database.wrap_database_errors:
        database.connection.executemany(_for_sqlite(statement), rows)


def _is_direct(database: BaseDatabaseWrapper) -> bool:
    """Whether nobody but the driver need see a statement; connects."""
    if database.vendor != "sqlite" or database.execute_wrappers or _are_logged(database):
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
    if database.vendor != "postgresql" or _are_logged(database):
        return False
    wrappers = database.execute_wrappers
    if wrappers and any(each is not _here.together for each in wrappers):
        return False
    # Asked here, as in `_is_direct`: one call asks a dozen times.
    if database.connection is None:
        database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    driver = database.connection
    if driver.prepare_threshold is None:
        return False
    if driver not in _unpooled:
        with database.wrap_database_errors:
            ((process,),) = driver.execute("SELECT pg_backend_pid()").fetchall()
        if process != driver.info.backend_pid:
            driver.prepare_threshold = None
            return False
        _unpooled.add(driver)
    return True


def _are_logged(database: BaseDatabaseWrapper) -> bool:
    """Django's `queries_logged`, in a fifth of its time."""
    return database.force_debug_cursor or _is_debug(database.alias)


@cache
def _is_debug(alias: str) -> bool:
    """Of a connection that nobody has asked to log: whether all are, by the settings."""
    return bool(connections[alias].queries_logged)


def _exchange(database: BaseDatabaseWrapper, statements: Sequence[Statement]) -> list[Answer]:
    """`exchange`, whose errors are raised as Django's."""
    with database.wrap_database_errors:
        return exchange(database.connection, statements)


# A statement is worded once for each shape of rows, so these are as few.
@cache
def _for_sqlite(statement: str) -> str:
    return statement.replace("%s", "?").replace("%%", "%")
