"""A recorder of the test's own: started on the test's database, with a spool below `tmp_path`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from helmdash.operations.recorder import Limits, Recorder
from helmdash.queries.access import ProjectInfo
from helmdash.queries.budgets import budgets
from tests.recording.support import make_ruled_project
from tests.support import needs
from tests.support.postgres import NoPostgres, Postgres

SPOOL_BYTES = 64 * 1024 * 1024


@pytest.fixture
def project(transactional_db: None) -> ProjectInfo:
    """The default project, committed, so that the recorder's thread sees it."""
    budgets.forget_cache()
    return make_ruled_project(payload="full")


@pytest.fixture
def make_recorder(tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    """A function that makes a recorder on one spool; all are stopped afterwards."""
    made: list[Recorder] = []

    def make(*, spool_max_bytes: int = SPOOL_BYTES, **limits: float) -> Recorder:
        made.append(
            Recorder(
                spool_dir=tmp_path / "spool",
                spool_max_bytes=spool_max_bytes,
                clock=timezone.now,
                limits=Limits(**{"linger": 0.0, **limits}),  # type: ignore[arg-type]
            )
        )
        return made[-1]

    yield make
    for each in made:
        each.stop(2.0)


@pytest.fixture
def started(project: ProjectInfo, make_recorder: Callable[..., Recorder]) -> Recorder:
    """A recorder that stores."""
    recorder = make_recorder()
    recorder.start()
    return recorder


@pytest.fixture
def stuck() -> Callable[[], AbstractContextManager[None]]:
    """A function that gives a context in which no other connection can write."""

    @contextlib.contextmanager
    def hold() -> Iterator[None]:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("LOCK TABLE records_call IN ACCESS EXCLUSIVE MODE")
            yield

    return hold


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A PostgreSQL of the test's own, to be stopped and started."""
    try:
        running = Postgres.start()
    except NoPostgres as error:
        needs.missing("PostgreSQL", str(error))
    yield running
    running.stop()
