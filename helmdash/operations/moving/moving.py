"""Moving all rows of a SQLite file into an empty PostgreSQL database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from helmdash import conf, installation, places
from helmdash.operations.backup.spool import is_in_use
from helmdash.operations.moving.source import SqliteSource, held
from helmdash.operations.moving.target import Mark, Target

Progress = Callable[[str], None]

# Rows of one transaction: some hundred milliseconds of work, which is all that is done again.
_ROWS = 5_000
_CONNECT_SECONDS = 5
_LEFT_OPEN = "what was moved so far stays, and the same command goes on from there"


class MoveProblem(Exception):
    """The rows may not, or cannot, go there; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What is in the new database now. resumed: rows that were there from a try before."""

    rows: Mapping[str, int]
    resumed: int


def move(url: str, *, env: conf.Env, progress: Progress) -> Moved:
    """Bring all rows of this data directory's SQLite file into the database of `url`.

    What was interrupted goes on where it was; where the file has changed since, it begins anew.
    The file is only read. Raises MoveProblem.
    """
    path = _source_path(env)
    _check_alone(env)
    with (
        _told(url),
        psycopg.connect(
            url, autocommit=True, connect_timeout=_CONNECT_SECONDS, application_name="helmdash-move"
        ) as handle,
    ):
        target = Target(handle)
        _check_target(target, url)
        with _held(path) as source:
            # None can start from here on: it wants to write. Another move that this one has waited
            # for may have finished, and a server work on what it brought.
            _check_alone(env)
            _check_target(target, url)
            return _move(source, target, url, progress)


def _move(source: SqliteSource, target: Target, url: str, progress: Progress) -> Moved:
    wanted = Mark(state=source.state(), migrations=source.migrations())
    begun = target.mark()
    if begun is None:
        target.make_mark()
    is_made = target.are_made()
    if not is_made:
        # A try before may have ended among them: what is made stays, and the rest is made now.
        progress("making the tables")
        _migrate(url)
        target.note_made()
    if target.migrations() != wanted.migrations:
        raise MoveProblem(
            f"{conf.masked(url)}: a move into it was begun by another release of HelmDash: finish "
            "it with that one, or name an empty database"
        )
    counts = source.counts()
    missing = set(counts) - target.tables()
    if missing:
        raise MoveProblem(f"the file has tables that are not ours: {', '.join(sorted(missing))}")
    if begun is None or begun.state != wanted.state or not is_made:
        target.begin(wanted, counts)
    resumed = sum(target.reached(table)[1] for table in counts)
    target.make_months(source.months())
    for table, rows in counts.items():
        _copy(source, target, table, rows, progress)
    _compare(target, counts)
    progress("checking that all rows refer to each other as they did")
    sequences = {table: source.sequence(table) for table in counts}
    target.finish({table: last for table, last in sequences.items() if last is not None})
    return Moved(rows=counts, resumed=resumed)


def _source_path(env: conf.Env) -> Path:
    path = places.sqlite_path(env)
    if path is None:
        raise MoveProblem(
            "DATABASE_URL leads to PostgreSQL: unset it, so that this data directory's SQLite "
            "file is what is moved"
        )
    if places.look_at_schema(env).is_ahead:
        raise MoveProblem("the file's tables are of a newer release: move it with that one")
    return path


def _check_alone(env: conf.Env) -> None:
    if is_in_use(env.data_dir / "spool"):
        raise MoveProblem(f"a server is running on {env.data_dir}: stop it first")


def _check_target(target: Target, url: str) -> None:
    if target.tables() and target.mark() is None:
        raise MoveProblem(
            f"{conf.masked(url)}: there are tables in it already; name an empty database"
        )


def _copy(source: SqliteSource, target: Target, table: str, rows: int, progress: Progress) -> None:
    types = target.types(table)
    unknown = source.columns(table) - set(types)
    if unknown:
        raise MoveProblem(f"{table} has columns that are not ours: {', '.join(sorted(unknown))}")
    columns = [name for name in types if name in source.columns(table)]
    readers = [_READERS.get(types[name]) for name in columns]
    reached, done = target.reached(table)
    while done < rows:
        progress(f"{table}: {done:,} of {rows:,} rows")
        found = source.rows(table, columns, after=reached, most=_ROWS)
        if not found:
            break
        reached = found[-1][0]
        target.put(table, columns, _converted(found, readers), reached=reached)
        done += len(found)


def _converted(
    rows: Sequence[tuple[Any, ...]], readers: Sequence[Callable[[Any], Any] | None]
) -> Iterator[list[Any]]:
    """Rows as COPY takes them, without the number that each begins with."""
    for row in rows:
        yield [
            value if read is None or value is None else read(value)
            for value, read in zip(row[1:], readers, strict=True)
        ]


# What SQLite has no type for. It stores times in UTC, without saying so.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "timestamp with time zone": "{}+00".format,
}


def _compare(target: Target, counts: Mapping[str, int]) -> None:
    wrong = [
        f"{table} has {found} rows instead of {rows}"
        for table, rows in counts.items()
        if (found := target.count(table)) != rows
    ]
    if wrong:
        raise MoveProblem(f"not all rows arrived: {'; '.join(wrong)}")


def _migrate(url: str) -> None:
    """Make the tables, in a process whose database is the new one. Raises MoveProblem."""
    with subprocess.Popen(
        [sys.executable, "-m", "helmdash.cli.making_tables"],
        env={
            **os.environ,
            conf.variable_names("database_url")[0]: url,
            "DJANGO_SETTINGS_MODULE": "helmdash.settings",
            # Where a checkout's commands have their own folder from.
            "PYTHONPATH": str(installation.ROOT),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as making:
        # Read to its end before standard input is closed: then it would end by itself.
        assert making.stderr is not None
        said = making.stderr.read()
        code = making.wait()
    if code:
        last = (said.strip().splitlines() or ["no word of why"])[-1]
        raise MoveProblem(f"{conf.masked(url)}: the tables cannot be made: {last}")


@contextmanager
def _held(path: Path) -> Iterator[SqliteSource]:
    try:
        with held(path) as source:
            yield source
    except sqlite3.Error as error:
        raise MoveProblem(f"{path}: {places.database_problem(error)}") from None


@contextmanager
def _told(url: str) -> Iterator[None]:
    """What PostgreSQL says, as one line. Raises MoveProblem."""
    try:
        yield
    except psycopg.OperationalError as error:
        problem = places.database_problem(error)
        raise MoveProblem(f"{conf.masked(url)}: {problem}; {_LEFT_OPEN}") from None
    except psycopg.Error as error:
        raise MoveProblem(f"{conf.masked(url)}: {places.database_problem(error)}") from None
