"""The SQLite file of a move: held still, counted, and read in the order of its rows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from helmdash.operations.backup import sqlite
from helmdash.records.statements.partitions import Month, month_of

# Of Django's own, and filled by the migrations of the target.
HISTORY = "django_migrations"


class SqliteSource:
    """A SQLite database that nobody writes to as long as this is open."""

    def __init__(self, handle: sqlite3.Connection, path: Path) -> None:
        self._handle = handle
        self._path = path

    def state(self) -> str:
        """A word that differs once anything was written since: the file's age and size, and those
        of its log, where somebody who reads keeps what was written from the file."""
        told = self._path.stat()
        state = f"{self._path} {told.st_mtime_ns} {told.st_size}"
        with contextlib.suppress(FileNotFoundError):
            log = self._path.with_name(f"{self._path.name}-wal").stat()
            if log.st_size:
                state = f"{state} {log.st_mtime_ns} {log.st_size}"
        return state

    def migrations(self) -> str:
        """The migrations that made these tables, as one text."""
        rows = self._handle.execute(f'SELECT app, name FROM "{HISTORY}" ORDER BY app, name')
        return "\n".join(f"{app}.{name}" for app, name in rows)

    def counts(self) -> Mapping[str, int]:
        """How many rows each table has."""
        names = self._handle.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND name != ? ORDER BY name",
            [HISTORY],
        ).fetchall()
        return {
            str(name): int(self._handle.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0])
            for (name,) in names
        }

    def months(self) -> set[Month]:
        """The months that calls are of."""
        found = self._handle.execute(
            "SELECT DISTINCT substr(started_at, 1, 7) FROM records_callname"
        )
        return {month_of(datetime.fromisoformat(f"{at}-01T00:00:00+00:00")) for (at,) in found}

    def sequence(self, table: str) -> int | None:
        """The last id that a table gave; None where it gave none."""
        found = self._handle.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", [table]
        ).fetchone()
        return int(found[0]) if found and found[0] else None

    def columns(self, table: str) -> set[str]:
        """The columns of a table."""
        return {str(row[1]) for row in self._handle.execute(f'PRAGMA table_info("{table}")')}

    def rows(
        self, table: str, columns: Sequence[str], *, after: int, most: int
    ) -> list[tuple[Any, ...]]:
        """The next rows behind a number (0: from the first): each its number, then its values."""
        wanted = ", ".join(f'"{name}"' for name in columns)
        return self._handle.execute(
            f'SELECT rowid, {wanted} FROM "{table}" WHERE rowid > ? ORDER BY rowid LIMIT ?',
            [after, most],
        ).fetchall()


@contextmanager
def held(path: Path) -> Iterator[SqliteSource]:
    """The database with its writers' lock held: who would write meanwhile is told it is locked.

    Nothing is written to it. Raises sqlite3.Error: also where somebody writes just now.
    """
    with sqlite.opened(path, mode="rw") as handle:
        # All that was written is in the file itself then, whose age says when it changed; what
        # somebody who reads keeps from it is in the log still.
        handle.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        handle.execute("BEGIN IMMEDIATE")
        try:
            yield SqliteSource(handle, path)
        finally:
            with contextlib.suppress(sqlite3.Error):
                handle.execute("ROLLBACK")
