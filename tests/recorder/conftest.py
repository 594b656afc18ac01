"""A recorder of the test's own: started on the test's database, with a spool below `tmp_path`."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from helmdash.operations.recorder import Limits, Recorder
from helmdash.operations.recorder.link import WriterLink
from helmdash.operations.recorder.serving import WriterServer
from helmdash.queries.access.access import ProjectInfo
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
def writer_server(tmp_path: Path) -> Iterator[WriterServer]:
    """A writer, in a thread of this process."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "writer"))
        listener.listen(8)
        found = WriterServer(listener, clock=timezone.now)
        thread = threading.Thread(target=found.serve, daemon=True)
        thread.start()
        yield found
        found.stop(2.0)
        thread.join(2.0)


@pytest.fixture
def listening(tmp_path: Path, writer_server: WriterServer) -> Path:
    """Where it listens."""
    return tmp_path / "writer"


@pytest.fixture
def link(listening: Path) -> WriterLink:
    """A link that is up."""
    found = WriterLink(str(listening), after_calls=0)
    end = time.monotonic() + 5
    while not found.is_ready() and time.monotonic() < end:
        time.sleep(0.005)
    assert found.is_up
    return found


@pytest.fixture
def linked(
    project: ProjectInfo, make_recorder: Callable[..., Recorder], link: WriterLink
) -> Recorder:
    """A recorder whose calls another one stores."""
    recorder = make_recorder()
    recorder.start(link)
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
