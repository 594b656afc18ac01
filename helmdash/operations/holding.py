"""Keeping a SQLite database open between requests.

Django opens a connection for each request and closes it afterwards. When the last one closes,
SQLite copies its log into the database file, waits for the disk and deletes the log: several
milliseconds after each request of a server with little to do. One idle connection that stays
prevents that; it holds no lock that anybody waits for.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from django.db import connection

_held: dict[str, sqlite3.Connection] = {}


def hold_database_open() -> None:
    """Open one more connection for as long as this process lives. Does nothing on PostgreSQL."""
    if connection.vendor != "sqlite":
        return
    name = str(connection.settings_dict["NAME"])
    if name in _held or not Path(name).exists():
        return
    held = sqlite3.connect(name, check_same_thread=False, isolation_level=None)
    # Only a connection that has read something takes part in the log.
    held.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    _held[name] = held


def let_database_close() -> None:
    """Undo it: for tests that delete the file."""
    while _held:
        _held.popitem()[1].close()
