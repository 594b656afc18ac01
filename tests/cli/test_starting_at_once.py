"""Several `up` that begin on one empty place: each finds it set up, and one of them has set it up.

On SQLite a person who starts it twice; on PostgreSQL the hosts of an installation.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

from helmdash.operations.database.set_up_alone import set_up_alone
from tests.support import environment
from tests.support.postgres import create_database, drop_database
from tests.support.processes import Process, kill, spawn_python, tail

pytestmark = pytest.mark.slow
# Two first starts, of which the second waits for the first.
_MOST_SECONDS = 150


def test_who_starts_at_the_same_time_waits_and_finds_all_made(tmp_path: Path) -> None:
    on_postgres = connection.vendor == "postgresql"
    places = ("one", "two") if on_postgres else ("one", "one")
    server = os.environ.get("DATABASE_URL", "")
    url = create_database(server, f"at_once_{uuid4().hex}") if on_postgres else ""
    logs = [tmp_path / f"{number}.log" for number in range(len(places))]
    processes: list[Process] = []
    try:
        for place, log in zip(places, logs, strict=True):
            given = {**environment.clean(), "HELMDASH_DATA_DIR": str(tmp_path / place)}
            given |= {"DATABASE_URL": url} if url else {}
            processes.append(spawn_python("manage.py", "up", "--setup-only", log=log, env=given))
        codes = [each.wait(_MOST_SECONDS) for each in processes]
    finally:
        for each in processes:
            kill(each)
        if url:
            drop_database(url)

    told = [tail(log) for log in logs]
    assert codes == [0, 0], told
    # The first admin and the first key are made once.
    for made in ("Admin       admin / ", "API key     hd_"):
        assert sum(made in each for each in told) == 1


@pytest.mark.django_db(transaction=True)
def test_one_at_a_time_and_who_waits_is_told_once(tmp_path: Path) -> None:
    waits, is_in = threading.Event(), threading.Event()
    told: list[bool] = []

    def second() -> None:
        def say() -> None:
            told.append(is_in.is_set())
            waits.set()

        try:
            with set_up_alone(tmp_path, say_waiting=say):
                is_in.set()
        finally:
            connection.close()

    with set_up_alone(tmp_path, say_waiting=lambda: told.append(True)):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(20)
        assert not is_in.is_set()
    thread.join(20)
    assert is_in.is_set()
    assert told == [False]
