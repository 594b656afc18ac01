"""Transactions of PostgreSQL have numbers that come again, after a crash or where another server
takes over; sums that were kept from before are of other rows then."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from helmdash.core.rollups.figures import CALLS, Marginal
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.rollups import figures
from helmdash.records.models import Rollup
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record
from tests.support import environment
from tests.support.postgres import Postgres
from tests.support.template import template_database

pytestmark = [
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's sums are by the texts"),
    # A database server of its own.
    pytest.mark.slow,
]
# What is committed and not on the disk yet is lost with the process that would bring it there, if
# that is kept from its work in time.
_TRIES = 10
_PATIENCE_S = 60.0


@pytest.fixture
def own_server(django_db_blocker: DjangoDbBlocker) -> Iterator[Postgres]:
    """A server with this run's tables, for this process to record on, and to be broken."""
    run, url = Path(os.environ["HELMDASH_DATA_DIR"]), os.environ["DATABASE_URL"]
    tables = template_database(url, run, environment.clean())
    settings = connection.settings_dict
    before = {name: settings[name] for name in ("HOST", "NAME")}
    with ExitStack() as stack:
        server = Postgres.running_at(url).copy(follows=False)
        stack.callback(server.stop)
        stack.enter_context(django_db_blocker.unblock())
        connection.close()
        settings.update(HOST=str(server.home), NAME=tables)
        stack.callback(settings.update, before)
        stack.callback(connection.close)
        yield server


def test_sums_of_transactions_that_are_lost_are_not_taken_for_those_of_others(
    own_server: Postgres,
) -> None:
    project = make_ruled_project()
    _record(project, 1)
    for _ in range(_TRIES):
        with _nothing_reaches_the_disk(own_server):
            _record(project, 5)
            lost = _places()
            assert _calls(project, is_summed=True) == _calls(project, is_summed=False)
        _wait_for(own_server)
        _record(project, 1)
        again = lost == _places()
        assert _calls(project, is_summed=True) == _calls(project, is_summed=False)
        if again:
            return
    pytest.fail("no transaction had the number of one that was lost")


def _record(project: ProjectInfo, calls: int) -> None:
    """Calls of long ago, whose month nothing else changes."""
    at = NOW - timedelta(days=90)
    record(project, *(make_capture(conversation=None, started_at=at) for _ in range(calls)))
    fold_all()


def _calls(project: ProjectInfo, *, is_summed: bool) -> int:
    found = figures(
        project_id=project.id, marginal=Marginal.MODEL, since=None, until=None, is_summed=is_summed
    )
    assert found is not None
    return sum(counts[CALLS] for counts in found.totals().values())


def _places() -> list[tuple[object, ...]]:
    """Who wrote the rows, and where they lie."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, xmin::text, ctid::text FROM {Rollup._meta.db_table} ORDER BY 1")
        return [*cursor.fetchall()]


@contextmanager
def _nothing_reaches_the_disk(server: Postgres) -> Iterator[None]:
    """At the end of the block the server begins anew with what is on the disk: one of its processes
    is killed, as the kernel does where memory runs out."""
    url = server.url(str(connection.settings_dict["NAME"]))
    with psycopg.connect(url, autocommit=True) as asked:
        asked.execute("CHECKPOINT")
        found = asked.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
        ).fetchone()
        assert found
        os.kill(found[0], signal.SIGSTOP)
        try:
            yield
            connection.close()
            os.kill(asked.info.backend_pid, signal.SIGKILL)
        finally:
            os.kill(found[0], signal.SIGCONT)


def _wait_for(server: Postgres) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with psycopg.connect(server.url("postgres")) as asked:
                asked.execute("SELECT 1")
                return
        except psycopg.Error:
            assert time.monotonic() < end
            time.sleep(0.05)
