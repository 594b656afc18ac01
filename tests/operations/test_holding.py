"""An idle connection keeps SQLite's log from being folded up after every request."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from helmdash.operations.holding import hold_database_open, let_database_close
from helmdash.records.models import Project


@pytest.mark.django_db(transaction=True)
def test_the_log_stays_while_the_database_is_held_open() -> None:
    log = Path(f"{connection.settings_dict['NAME']}-wal")

    def is_log_kept() -> bool:
        Project.objects.create(slug=f"p{Project.objects.count()}", name="Any")
        connection.close()
        return log.exists()

    let_database_close()  # whatever other tests of this process have opened
    kept_before = is_log_kept()
    hold_database_open()
    kept_meanwhile = is_log_kept()
    let_database_close()

    # PostgreSQL has no such log, and nothing is done about it there.
    is_sqlite = connection.vendor == "sqlite"
    assert (kept_before, kept_meanwhile, log.exists()) == (False, is_sqlite, False)
