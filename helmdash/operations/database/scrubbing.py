"""What was deleted for good is gone from SQLite's files as well.

Deleted rows are overwritten (`secure_delete`, set for every connection), but the log beside the
database holds pages as they were written, deleted texts among them, until it is written over. It is
therefore emptied. PostgreSQL overwrites at its next vacuum, and keeps its own log for a while.
"""

from __future__ import annotations

import logging

from django.db import connection

from helmdash.operations.database.transactions import writer_lock

logger = logging.getLogger(__name__)

# Writers wait meanwhile, and whoever still reads an old moment (an export, a backup) does so longer
# than anybody wants to wait for; SQLite then empties the log some other time.
_MOST_WAIT_MS = 1_000


def scrub() -> bool:
    """Empty SQLite's log. False: somebody reads in it, and what it holds stays until later."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return connection.vendor != "sqlite"
    with writer_lock(), connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (usual_ms,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout={_MOST_WAIT_MS}")
        try:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (is_busy, *_) = cursor.fetchone()
        finally:
            cursor.execute(f"PRAGMA busy_timeout={usual_ms}")
    if is_busy:
        logger.warning("the database's log is being read: deleted texts stay in it until later")
    return not is_busy
