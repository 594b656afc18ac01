"""Counting anew keeps nobody out."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection

from helmdash.core.access.permissions import SHELL
from helmdash.operations.database.transactions import write
from helmdash.operations.rollups.rebuilding import rebuild
from tests.factories import NOW, make_capture, make_project, record


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has more than one writer")
@pytest.mark.django_db(transaction=True)
def test_others_have_their_turn_between_the_steps_of_a_rebuild() -> None:
    """A cancel of it, a report: SQLite's one writer is free as long as a step has had it."""
    project = make_project()
    record(*(make_capture(id=f"c-{n}", started_at=NOW - timedelta(hours=n)) for n in range(24)))
    turns = 0
    is_over = threading.Event()

    def write_on() -> None:
        nonlocal turns
        while not is_over.is_set():
            write(lambda: None)
            turns += 1
        connection.close()

    before_steps: list[int] = []
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(write_on)
        rebuild(
            actor=SHELL,
            project_id=project.id,
            anew=True,
            progress=lambda _: before_steps.append(turns),
        )
        is_over.set()
        other.result()

    # It has written between any two of them, or nearly so on a busy machine.
    kept_out = sum(earlier == later for earlier, later in pairwise(before_steps))
    assert len(before_steps) >= 24
    assert kept_out <= len(before_steps) // 4
