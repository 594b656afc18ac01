"""Telling the database how its tables are filled, so that it chooses the right index.

SQLite does nothing of it by itself. There it is asked for a table at a time and with a bound on
what is read of each index, for a writer waits meanwhile: some milliseconds, at a million calls as
at a thousand. PostgreSQL's autovacuum looks after its tables, but never at one that is made of
partitions as a whole. From 18 on that one is looked at alone; before, its partitions are looked at
along with it, one by one, however many there are (`is_dear`).
"""

from __future__ import annotations

from django.db import connection

from helmdash.operations.database.transactions import writer_lock

# Rows of each index that are looked at for each of its columns; SQLite's own advice is 100 to 1000.
_ANALYSIS_LIMIT = 200
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) != 'sqlite_'"
_PARTITIONED = (
    "SELECT relname FROM pg_class"
    " WHERE relkind = 'p' AND relnamespace = current_schema()::regnamespace"
)


# The first that knows ANALYZE ONLY.
_ONLY_FROM = 180_000


def is_dear() -> bool:
    """Whether to look takes the longer the more months of calls there are."""
    return connection.vendor == "postgresql" and _version() < _ONLY_FROM


def refresh(*, unseen: bool = False) -> int:
    """Analyze the tables that nobody else does; how many those were. unseen: of PostgreSQL's only
    those that nobody has looked at yet.

    Each in a statement of its own, so that others write in between. Not by SQLite's `PRAGMA
    optimize`: it looks only after tables that its own connection has asked for, all of them in one
    transaction.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA analysis_limit={_ANALYSIS_LIMIT}")
        told = _PARTITIONED + (" AND reltuples < 0" if unseen else "")
        cursor.execute(_TABLES if connection.vendor == "sqlite" else told)
        tables = [name for (name,) in cursor.fetchall()]
    only = "ONLY " if connection.vendor == "postgresql" and not is_dear() else ""
    for table in tables:
        with writer_lock(), connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {only}{connection.ops.quote_name(table)}")
    return len(tables)


def _version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int")
        found: int = cursor.fetchone()[0]
        return found
