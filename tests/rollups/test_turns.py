"""Who writes rollups: counting anew keeps nobody out, and none are written for what is going."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from helmdash.core.access.permissions import SHELL
from helmdash.operations.database.transactions import write
from helmdash.operations.demo.loading import begin_demo, remove_demo
from helmdash.operations.rollups import folding, rebuilding
from helmdash.operations.rollups.rebuilding import rebuild
from helmdash.operations.rollups.storing import store_slots
from helmdash.queries.access.access import project_info
from helmdash.records.models import Project, Rollup
from helmdash.records.rollups.rollup_rows import read_quarter
from tests.factories import NOW, make_capture, make_project, record

# Far longer than to record one call takes, on any machine.
_UNTIL_KEPT_OUT_S = 30.0


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has more than one writer")
@pytest.mark.django_db(transaction=True)
def test_others_have_their_turn_between_the_steps_of_a_rebuild() -> None:
    """A cancel of it, a report: SQLite's one writer is free as long as a step has had it."""
    project = make_project()
    record(*(make_capture(id=f"c-{n}", started_at=NOW - timedelta(hours=n)) for n in range(24)))
    turns = 0
    has_begun, is_over = threading.Event(), threading.Event()

    def write_on() -> None:
        nonlocal turns
        while not is_over.is_set():
            write(lambda: None)
            turns += 1
            has_begun.set()
        connection.close()

    before_steps: list[int] = []
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(write_on)
        assert has_begun.wait(20)
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


@pytest.mark.parametrize("is_folded", [False, True])
@pytest.mark.django_db(transaction=True)
def test_others_record_while_a_rebuild_reads_a_quarter_hour(
    is_folded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 60,000 calls kept SQLite's other writers out for half a minute. What is recorded, or
    counted, meanwhile is neither lost nor counted twice."""
    project = make_project()
    record(*(make_capture(id=f"c-{n}", started_at=NOW) for n in range(5)))
    is_first = True

    def meanwhile(*, name: str, is_folded: bool) -> None:
        try:
            record(make_capture(id=name, started_at=NOW), project=project)
            if is_folded:
                assert folding.fold_all() == 2
        finally:
            connection.close()

    def read_late(**given: Any) -> Any:
        nonlocal is_first
        if not is_first:
            return read_quarter(**given)
        is_first = False
        threads.submit(meanwhile, name="before", is_folded=False).result(_UNTIL_KEPT_OUT_S)
        found = read_quarter(**given)
        threads.submit(meanwhile, name="after", is_folded=is_folded).result(_UNTIL_KEPT_OUT_S)
        return found

    monkeypatch.setattr(rebuilding, "read_quarter", read_late)
    # Around the rebuild: one that keeps others out has given up before they are waited for.
    with ThreadPoolExecutor(1) as threads:
        rebuild(actor=SHELL, project_id=project.id, anew=True, progress=lambda _: None)
    folding.fold_all()

    again = rebuild(actor=SHELL, project_id=project.id, anew=True, progress=lambda _: None)
    assert (again.calls, again.wrong) == (7, 0)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_a_demo_is_not_removed_under_those_who_count_it(monkeypatch: pytest.MonkeyPatch) -> None:
    make_project()
    begin_demo(actor=SHELL)
    demo = project_info(Project.objects.get(is_demo=True))
    record(make_capture(started_at=NOW), project=demo)

    def remove() -> bool:
        try:
            return remove_demo(actor=SHELL)
        finally:
            connection.close()

    def store_late(*args: Any, **kwargs: Any) -> Any:
        removal = threads.submit(remove)
        wait([removal], timeout=1)
        removals.append(removal)
        return store_slots(*args, **kwargs)

    removals: list[Future[bool]] = []
    monkeypatch.setattr(folding, "store_slots", store_late)
    with ThreadPoolExecutor(1) as threads:
        assert folding.fold() == 1
        assert removals[0].result()
    assert not Rollup.objects.exists()
