"""Telling SQLite how its tables are filled, so that it chooses the right index for a question.

Nobody does it by itself there; PostgreSQL's autovacuum does. Asked for a table at a time and with a
bound on what is read of each index, for a writer waits meanwhile: some milliseconds, at a million
calls as at a thousand.
"""

from __future__ import annotations

import logging
import threading

from django.db import connection, connections

from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.database.transactions import writer_lock

logger = logging.getLogger(__name__)

# Rows of each index that are looked at for each of its columns; SQLite's own advice is 100 to 1000.
_ANALYSIS_LIMIT = 200
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) != 'sqlite_'"
# A new database grows fast; then once an hour.
_FIRST_SECONDS, _LAST_SECONDS = 30.0, 3600.0


def refresh() -> int:
    """Analyze all tables; how many those were. Does nothing on PostgreSQL.

    Each in a statement of its own, so that others write in between. Not by `PRAGMA optimize`: it
    looks only after tables that its own connection has asked for, all of them in one transaction.
    """
    if connection.vendor != "sqlite":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA analysis_limit={_ANALYSIS_LIMIT}")
        cursor.execute(_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
    for table in tables:
        with writer_lock(), connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
    return len(tables)


class StatisticsThread:
    """Refreshes the figures now and then, for as long as a server runs."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statistics", daemon=True)

    def start(self) -> None:
        """Begin. Does nothing on PostgreSQL."""
        if connection.vendor == "sqlite":
            self._thread.start()

    def stop(self) -> None:
        """Let the thread end; it may be inside of a statement."""
        self._end.set()

    def _run(self) -> None:
        wait = _FIRST_SECONDS
        while not self._end.wait(wait):
            wait = min(2 * wait, _LAST_SECONDS)
            try:
                with thread_connection():
                    refresh()
            except Exception:
                # An old figure costs time and no truth; who needs the database says it is away.
                logger.debug("the tables' figures could not be refreshed", exc_info=True)
        connections.close_all()
