"""An idle connection keeps SQLite's log from being folded up after every request."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from helmdash.operations.database.sqlite_file import hold_database_open, let_database_close


@pytest.mark.django_db(transaction=True)
def test_the_log_stays_while_the_database_is_held_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file of its own: threads of other tests may have the tests' database open.
    own = tmp_path / "own.sqlite3"
    log = Path(f"{own}-wal")
    if connection.vendor == "sqlite":
        own.touch()
        connection.close()
        monkeypatch.setitem(connection.settings_dict, "NAME", str(own))

    def is_log_kept() -> bool:
        if connection.vendor != "sqlite":
            return log.exists()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS held (number integer)")
            cursor.execute("INSERT INTO held VALUES (1)")
        connection.close()
        return log.exists()

    kept_before = is_log_kept()
    hold_database_open()
    kept_meanwhile = is_log_kept()
    let_database_close()

    # PostgreSQL has no such log, and nothing is done about it there.
    is_sqlite = connection.vendor == "sqlite"
    assert (kept_before, kept_meanwhile, log.exists()) == (False, is_sqlite, False)
