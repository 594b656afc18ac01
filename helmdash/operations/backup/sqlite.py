"""SQLite in a backup: one moment of the file, copied page by page while others write.

A read transaction holds the moment; the copy goes on within it, so that writers neither wait for
it nor make it start again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from helmdash.operations.backup.archive import Progress, Table

# Some hundred times a second of work between two looks at the progress.
_PAGES = 2_000
_BUSY_SECONDS = 60


def snapshot(source: Path, target: Path, progress: Progress) -> None:
    """Copy one moment of a database into a new file. Raises sqlite3.Error and OSError."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def tell(status: int, remaining: int, total: int) -> None:
        progress(f"copying the database: {100 - 100 * remaining // max(total, 1)} %")

    with opened(source, mode="rw") as old, opened(target, mode="rw") as new:
        old.execute("BEGIN")
        # A transaction takes its moment with the first page it reads.
        old.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        old.backup(new, pages=_PAGES, progress=tell)
        old.execute("ROLLBACK")
        # One file, without a log beside it.
        new.execute("PRAGMA journal_mode=DELETE")


def table_rows(path: Path) -> Mapping[str, Table]:
    """The tables of a copy, and how many rows each has."""
    with opened(path, mode="ro") as handle:
        names = [
            str(name)
            for (name,) in handle.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        return {
            name: Table(
                columns=(), rows=handle.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]
            )
            for name in names
        }


def applied_migrations(path: Path) -> Mapping[str, tuple[str, ...]]:
    """The migrations of a copy, by app."""
    found: dict[str, list[str]] = {}
    with opened(path, mode="ro") as handle:
        for app, name in handle.execute("SELECT app, name FROM django_migrations ORDER BY id"):
            found.setdefault(app, []).append(name)
    return {app: tuple(names) for app, names in found.items()}


def is_sound(path: Path) -> bool:
    """Whether the file is a database without damage. Reads all of it."""
    try:
        with opened(path, mode="ro") as handle:
            return bool(handle.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.Error:
        return False


def has_data(path: Path) -> bool:
    """Whether there is a file with any table, or with something that is no database."""
    if not path.exists():
        return False
    try:
        with opened(path, mode="rw") as handle:
            return bool(handle.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])
    except sqlite3.Error:
        return True


def replace(path: Path, copy: Path) -> None:
    """Put a copy in the place of a database that nobody has open.

    The old one's log goes first: read into the new file it would damage it.
    """
    for suffix in ("-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    copy.replace(path)


@contextmanager
def opened(path: Path, *, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection without transactions of its own."""
    uri = f"file:{quote(str(path))}?mode={mode}"
    handle = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    with contextlib.closing(handle):
        yield handle
