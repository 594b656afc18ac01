"""Fast row writing for the hot path: COPY and JSON on PostgreSQL, executemany on SQLite.

Django's bulk_create costs several times as much for rows this wide (spec: performance); the
columns still come from the models, so a changed model changes the statement.

On PostgreSQL a statement over several rows takes them as one text (`json_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from django.db import connection, models
from psycopg.pq import PipelineStatus

from helmdash.records.statements import partitions
from helmdash.records.statements.column_values import Converter, columns_of, converter_of, values_of
from helmdash.records.statements.direct import (
    Question,
    ask,
    ask_prepared,
    can_ask_ahead,
    each_of,
    is_postgres,
    is_told_together,
    sqlite_driver,
    tell,
    tell_many,
    tell_prepared,
    told_together,
)
from helmdash.records.statements.json_rows import row_as_json, row_source, rows_as_json, rows_source
from helmdash.records.statements.possible_values import require_possible


def allocate_ids(model: type[models.Model], count: int) -> Sequence[int]:
    """Reserve primary keys for rows about to be inserted, inside the writing transaction."""
    table = model._meta.db_table
    if is_postgres():
        return [row[0] for row in ask_prepared(*ids_question(model, count))]
    # SQLite: the write lock is held, so nobody else can take these numbers. The inserts move
    # sqlite_sequence on, and a deleted row's number is not given again.
    found = ask("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
    first = (found[0][0] if found else 0) + 1
    return range(first, first + count)


def ids_question(model: type[models.Model], count: int) -> Question:
    """What `allocate_ids` asks: PostgreSQL alone."""
    statement = "SELECT nextval(%s::regclass) FROM generate_series(1, %s)"
    return Question(statement, [_sequence_of(model._meta.db_table), count])


# To look it up takes five times as long as to take a number, and would be done for each.
@cache
def _sequence_of(table: str) -> str:
    """The sequence that a table of PostgreSQL takes its numbers from."""
    return str(ask("SELECT pg_get_serial_sequence(%s, 'id')", [table])[0][0])


# Rows in one statement of SQLite; every number of rows is made of these.
_STEPS = (64, 16, 4, 1)
# SQLite's own bound since 3.32.
_MOST_VARIABLES = 32_766
# COPY waits for the server's answer three times for each table; for so few rows that is dearer than
# what it saves. Groups of 16 reports take 13 ms instead of 15 since inserts are prepared, and a
# batch of a hundred the same either way.
_FEW = 32
# The same where calls are stored, a group of the recorder's. There COPY has to wait for its turn,
# and JSON is inserted while that of the next table is made: a batch of 60 calls takes 24 ms instead
# of 28, one of 100 takes 30 instead of 34, one of 400 takes 106 instead of 113.
_FEW_STORED = 500
# Characters of one statement: a connection keeps the memory of its longest. That of a usual group.
_MOST_TOLD = 8 * 1024 * 1024


def insert_rows(model: type[models.Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows given by attribute name; every row has the same keys.

    Raises django.db.IntegrityError where a constraint does not hold.
    """
    if not rows:
        return
    if model._meta.db_table in partitions.TABLES:
        partitions.provide(row["started_at"] for row in rows)
    names = tuple(rows[0])
    _, converters = columns_of(model, names)
    values = values_of(rows, names, converters)
    if is_sent_together() or is_few(len(rows)):
        _tell_as_json(_insertion_of_json(model, names), model, names, values)
        return
    statement = _insertion(model, names)
    if is_postgres():
        _copy(statement, values)
        return
    require_possible(model, names, values)
    if _process.is_alone:
        tell_many(statement, values)
    else:
        _insert_in_steps(statement, values)


@dataclass(slots=True)
class _Process:
    """is_alone: nothing but storing is done here, so no thread waits for the interpreter."""

    is_alone: bool = False


_process = _Process()


def store_alone() -> None:
    """This process does nothing but store: on SQLite, rows go to the driver one by one from now on,
    which takes a tenth less than to make long statements of them."""
    _process.is_alone = True


def is_few(rows: int) -> bool:
    """Whether so many rows go to PostgreSQL without COPY; on SQLite there is no such difference."""
    return is_postgres() and rows <= (_FEW_STORED if can_ask_ahead() else _FEW)


@contextmanager
def sent_together(rows: int, *, ends: bool = False) -> Iterator[None]:
    """Wait for the answers to all statements of the block at its end: PostgreSQL, and where there
    are few rows.

    Nobody should read an answer within. Raises the first error of them at the end or before. Many
    rows go by COPY, which must wait for its turn. ends: as of `told_together`, where that is
    possible.
    """
    if not is_few(rows):
        yield
    elif can_ask_ahead():
        with told_together(ends=ends):
            yield
    else:
        with connection.wrap_database_errors, connection.connection.pipeline():
            yield


def is_sent_together() -> bool:
    """Within `sent_together`, and on PostgreSQL: there is no COPY, and no answer is to be read."""
    if not is_postgres():
        return False
    driver = connection.connection
    is_pipeline = driver is not None and driver.pgconn.pipeline_status != PipelineStatus.OFF
    return is_pipeline or is_told_together()


def find_existing(
    model: type[models.Model], column: str, values: Sequence[str], where: Mapping[str, Any]
) -> set[str]:
    """Which of the values a text column holds already, among the rows that `where` describes.

    `where` is column = value, or column >= value for a time. One query.
    """
    if not values:
        return set()
    return {row[0] for row in ask_prepared(*existing_question(model, column, values, where))}


def existing_question(
    model: type[models.Model], column: str, values: Sequence[str], where: Mapping[str, Any]
) -> Question:
    """What `find_existing` asks; one value at least."""
    table, found, where_told, converters = _conditions(model, column, tuple(where))
    taken = [
        convert(value) if convert else value
        for convert, value in zip(converters, where.values(), strict=True)
    ]
    return each_of(found, table, where_told, taken, key=found, values=values)


def upsert_rows(
    model: type[models.Model],
    rows: Sequence[Mapping[str, Any]],
    *,
    unique: Sequence[str],
    update: str,
) -> None:
    """Insert rows; where one with the same unique columns is there, set its `update` column.

    Rows must come in one order from every writer, and without doubles.
    """
    if not rows:
        return
    names = tuple(rows[0])
    _, converters = columns_of(model, names)
    statement = _upsert(model, names, tuple(unique), update)
    values = values_of(rows, names, converters)
    if is_postgres():
        _tell_as_json(statement, model, names, values)
        return
    require_possible(model, names, values)
    tell_many(statement, values)


@cache
def _upsert(
    model: type[models.Model],
    names: tuple[str, ...],
    unique: tuple[str, ...],
    update: str,
) -> str:
    columns, _ = columns_of(model, names)
    quote = connection.ops.quote_name
    head = f"INSERT INTO {quote(model._meta.db_table)} ({', '.join(map(quote, columns))})"
    tail = (
        f" ON CONFLICT ({', '.join(map(quote, unique))})"
        f" DO UPDATE SET {quote(update)} = excluded.{quote(update)}"
    )
    if is_postgres():
        return f"{head} SELECT * FROM {rows_source(model, names)}{tail}"
    return f"{head} VALUES ({', '.join(['%s'] * len(columns))}){tail}"


def update_rows(
    model: type[models.Model],
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    keys: Sequence[str] = ("id",),
    only_upwards: Sequence[str] = (),
) -> None:
    """Set the named columns of many rows, found by `keys`; each row holds both.

    A column of `only_upwards` takes a number only where it held a smaller one or none.
    """
    if not rows:
        return
    update = _update(model, tuple(names), tuple(keys), tuple(only_upwards))
    values = values_of(rows, update.taken, update.converters)
    if is_postgres():
        if len(rows) == 1:
            tell_prepared(update.of_one, [row_as_json(model, update.taken, values[0])])
        else:
            tell_prepared(update.statement, rows_as_json(model, update.taken, values))
        return
    require_possible(model, update.taken, values)
    tell_many(update.statement, values)


@dataclass(frozen=True, slots=True)
class _Update:
    """A statement, the names of what it takes in their order, and what converts each."""

    statement: str
    of_one: str
    """PostgreSQL: for a single row. Of how many rows there are a plan knows nothing else, and reads
    all of a table of some hundred."""
    taken: tuple[str, ...]
    converters: tuple[Converter | None, ...]


# Wording it costs more than carrying it out.
@cache
def _update(
    model: type[models.Model],
    names: tuple[str, ...],
    keys: tuple[str, ...],
    only_upwards: tuple[str, ...],
) -> _Update:
    everything = (*names, *keys)
    columns, converters = columns_of(model, everything)
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    if is_postgres():
        sets = [
            # GREATEST passes over nulls.
            f"{quote(c)} = GREATEST({table}.{quote(c)}, v.{quote(c)})"
            if name in only_upwards
            else f"{quote(c)} = v.{quote(c)}"
            for name, c in zip(names, columns, strict=False)
        ]
        found = [f"{table}.{quote(c)} = v.{quote(c)}" for c in columns[len(names) :]]
        statement, of_one = (
            f"UPDATE {table} SET {', '.join(sets)} FROM {source} WHERE {' AND '.join(found)}"
            for source in (rows_source(model, everything), row_source(model, everything))
        )
        return _Update(statement, of_one, everything, converters)
    # SQLite's MAX of two values is null when either is.
    upwards = "{0} = COALESCE(MAX({0}, %s), {0}, %s)"
    worded: list[str] = []
    taken: list[str] = []
    for name, column in zip(names, columns, strict=False):
        is_upwards = name in only_upwards
        worded.append((upwards if is_upwards else "{0} = %s").format(quote(column)))
        taken += [name, name] if is_upwards else [name]
    found = [f"{quote(c)} = %s" for c in columns[len(names) :]]
    every = (*taken, *keys)
    statement = f"UPDATE {table} SET {', '.join(worded)} WHERE {' AND '.join(found)}"
    return _Update(statement, statement, every, columns_of(model, every)[1])


def analyze() -> None:
    """Tell the database how its tables are filled, as its own housekeeping would in a while."""
    # VACUUM lets an index answer alone, but refuses to run inside a transaction.
    can_vacuum = is_postgres() and not connection.in_atomic_block
    tell("VACUUM (ANALYZE)" if can_vacuum else "ANALYZE", [])


@cache
def _conditions(
    model: type[models.Model], column: str, where: tuple[str, ...]
) -> tuple[str, str, str, tuple[Converter | None, ...]]:
    """Table, column and conditions of `find_existing`, and what converts the values of each."""
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    quote = connection.ops.quote_name
    # IS TRUE keeps a planner from the index of the times, by which a statement meets all that was
    # stored lately: the values are few, and have an index of their own.
    conditions = [
        f"({quote(name)} >= %s) IS TRUE"
        if isinstance(by_name[name], models.DateTimeField)
        else f"{quote(name)} = %s"
        for name in where
    ]
    converters = tuple(converter_of(by_name[name]) for name in where)
    told = " AND ".join(conditions)
    return quote(model._meta.db_table), quote(column), told, converters


def _tell_as_json(
    statement: str, model: type[models.Model], names: tuple[str, ...], values: list[list[Any]]
) -> None:
    """Tell a statement of `rows_source` for rows in their order: once, or for parts of them."""
    told = rows_as_json(model, names, values)
    if len(told[0]) > _MOST_TOLD and len(values) > 1:
        half = len(values) // 2
        _tell_as_json(statement, model, names, values[:half])
        _tell_as_json(statement, model, names, values[half:])
        return
    tell_prepared(statement, told)


def _copy(statement: str, rows: Iterable[Sequence[Any]]) -> None:
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _insert_in_steps(statement: str, rows: list[list[Any]]) -> None:
    """SQLite, where others want the interpreter: many rows in one statement, as far as they go.

    The driver lets other threads run before each statement, and waits for its turn after it: with
    one row in each, a busy event loop makes that most of the work (measured: 330 against 160
    microseconds a call of the gateway).
    """
    width = len(rows[0])
    with sqlite_driver() as driver:
        start = 0
        for size in _STEPS:
            if size * width > _MOST_VARIABLES:
                continue
            while len(rows) - start >= size:
                step = rows[start : start + size]
                start += size
                # Few sizes, so that the driver's cache holds them all.
                driver.execute(_for_rows(statement, width, size), list(chain.from_iterable(step)))


@cache
def _for_rows(statement: str, width: int, rows: int) -> str:
    """An INSERT of one row with `width` columns, for several rows."""
    head = statement[: statement.index(" VALUES ")]
    hole = f"({', '.join('?' * width)})"
    return f"{head} VALUES {', '.join([hole] * rows)}"


@cache
def _insertion_of_json(model: type[models.Model], names: tuple[str, ...]) -> str:
    columns, _ = columns_of(model, names)
    quoted = ", ".join(map(connection.ops.quote_name, columns))
    table = connection.ops.quote_name(model._meta.db_table)
    return f"INSERT INTO {table} ({quoted}) SELECT {quoted} FROM {rows_source(model, names)}"


# Asked once for each shape of row: quoting some dozens of names costs more than a small insert.
@cache
def _insertion(model: type[models.Model], names: tuple[str, ...]) -> str:
    columns, _ = columns_of(model, names)
    quote = connection.ops.quote_name
    quoted = ", ".join(map(quote, columns))
    table = quote(model._meta.db_table)
    if is_postgres():
        return f"COPY {table} ({quoted}) FROM STDIN"
    holes = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {table} ({quoted}) VALUES ({holes})"
