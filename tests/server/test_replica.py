"""A replica of PostgreSQL's, which the database streams to, and a HelmDash that reads from it.

Who reads misses nothing that was committed before, wherever it is read from.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

from helmdash.doors.replica import HEADER
from tests.support import environment
from tests.support.postgres import Postgres
from tests.support.server import Served
from tests.support.template import SERVED_DATABASE, copy_template

pytestmark = [
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no replica"),
    # Two copies of a database server, and a HelmDash.
    pytest.mark.slow,
]
PAGES = ("/", "/conversations/", "/conversations/talk-1/", "/calls/", "/models/", "/trims/")
READS = ("calls?limit=20", "calls/call-7", "conversations", "conversations/talk-1")
ALL = (*PAGES, *(f"/api/v1/{path}" for path in READS))
# Asked for while it is sent: its head cannot say where it comes from.
EXPORT = "/api/v1/calls/export"
# Of a page: how long ago things were differs from look to look.
_NAMES = re.compile(r"(?:call|talk)-\d+|\d[\d,]* calls?")
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A HelmDash, a person and a program who ask it, and its replica."""

    served: Served
    person: httpx.Client
    program: httpx.Client
    primary: Postgres
    replica: Postgres

    def at_replica(self, statement: str) -> None:
        with psycopg.connect(self.replica.url("postgres"), autocommit=True) as asked:
            asked.execute(statement.encode())

    def usable(self) -> float:
        text = self.program.get("/metrics").text
        families = {each.name: each for each in text_string_to_metric_families(text)}
        return families["helmdash_replica_usable"].samples[0].value


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    data_dir = tmp_path_factory.mktemp("replica") / "data"
    run, url = Path(os.environ["HELMDASH_DATA_DIR"]), os.environ["DATABASE_URL"]
    found = copy_template(data_dir, run, environment.clean(), url)
    with ExitStack() as stack:
        # Of the test's own: what others write would keep the replica busy.
        primary = Postgres.running_at(url).copy(follows=False)
        stack.callback(primary.stop)
        with psycopg.connect(primary.url("postgres"), autocommit=True) as asked:
            # As it is in use: else what is committed need not be on the disk, nor on its way.
            asked.execute(f"ALTER DATABASE {SERVED_DATABASE} SET synchronous_commit = on".encode())
        replica = primary.copy(follows=True)
        stack.callback(replica.stop)
        served = Served(
            data_dir=data_dir,
            settings={
                "DATABASE_URL": primary.url(SERVED_DATABASE),
                "HELMDASH_REPLICA_URL": replica.url(SERVED_DATABASE),
            },
            api_key=found["HELMDASH_BOOTSTRAP_API_KEY"],
            admin_password=found["HELMDASH_ADMIN_PASSWORD"],
            forked=True,
        )
        served.start()
        stack.callback(served.kill)
        person = stack.enter_context(httpx.Client(base_url=served.base_url, timeout=30))
        program = stack.enter_context(
            httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30)
        )
        _sign_in(person, served.admin_password)
        for n in range(20):
            _report(program, f"call-{n}", f"talk-{n % 3}")
        yield World(served=served, person=person, program=program, primary=primary, replica=replica)


def _sign_in(person: httpx.Client, password: str) -> None:
    token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', person.get("/login/").text)
    assert token
    form = {"csrfmiddlewaretoken": token[1], "username": "admin", "password": password}
    assert person.post("/login/", data=form).status_code == 302


def _report(program: httpx.Client, name: str, conversation: str = "talk-1") -> None:
    call = {
        "id": name,
        "conversation": conversation,
        "model": "openai/gpt-4o",
        "usage": {"prompt_tokens": 90_000, "completion_tokens": 300},
    }
    assert program.post("/api/v1/calls", json=call).status_code == 201


def _look(world: World, path: str) -> httpx.Response:
    look = (world.program if path.startswith("/api/") else world.person).get(path)
    assert look.status_code == 200, path
    return look


def _look_there(world: World, path: str) -> httpx.Response:
    """Until it comes from the replica: on a busy machine that is late now and then."""
    end = time.monotonic() + _PATIENCE_S
    while not _is_from_replica(look := _look(world, path)):
        assert time.monotonic() < end, path
        time.sleep(0.05)
    return look


def _told(look: httpx.Response) -> object:
    """All that is JSON; and of a page what it is about."""
    is_page = look.headers["content-type"].startswith("text/html")
    return _NAMES.findall(look.text) if is_page else look.text


def _is_from_replica(look: httpx.Response) -> bool:
    return bool(look.headers.get(HEADER) == "replica")


def test_reads_come_from_the_replica_while_it_has_all_and_else_from_the_primary(
    world: World,
) -> None:
    """One walk: to set the servers up takes longer than all of it."""
    _same_from_either_and_without_it(world)
    _nothing_missed_however_far_behind(world)
    _refused_where_another_took_over_that_had_less(world)
    _refused_once_it_takes_writes(world)


def _same_from_either_and_without_it(world: World) -> None:
    beside = {path: _told(_look_there(world, path)) for path in ALL}
    export = _look(world, EXPORT).text
    world.replica.halt()
    try:
        alone = {path: _look(world, path) for path in ALL}
        assert _look(world, EXPORT).text == export
        doctor = world.served.manage("doctor").stdout
        is_usable = world.usable()
    finally:
        world.replica.resume()

    assert len(export.splitlines()) >= 20
    assert {path: _told(look) for path, look in alone.items()} == beside
    assert not any(map(_is_from_replica, alone.values()))
    assert "HELMDASH_REPLICA_URL: it cannot be reached" in doctor
    assert is_usable == 0
    _look_there(world, "/calls/")
    assert "cannot be reached" not in _look(world, "/settings/recorder/").text


def _nothing_missed_however_far_behind(world: World) -> None:
    def write_and_read(name: str) -> bool:
        _report(world.program, name)
        assert name in _look(world, "/calls/").text
        return _is_from_replica(_look(world, f"/api/v1/calls/{name}"))

    end = time.monotonic() + _PATIENCE_S
    names = (f"soon-{n}" for n in itertools.count())
    while [write_and_read(next(names)) for _ in range(10)].count(True) < 3:
        assert time.monotonic() < end
    world.at_replica("SELECT pg_wal_replay_pause()")
    assert not any(write_and_read(f"paused-{n}") for n in range(3))
    assert world.usable() == 0
    world.at_replica("SELECT pg_wal_replay_resume()")
    _look_there(world, "/api/v1/calls/paused-2")


def _refused_where_another_took_over_that_had_less(world: World) -> None:
    """The replica's log is longer than that of the new primary, and says what is lost there."""
    other = world.primary.copy(follows=True)
    try:
        other.halt()
        for n in range(30):
            _report(world.program, f"lost-{n}")
        assert "lost-29" in _look_there(world, "/api/v1/calls?limit=20").text
        world.served.stop()
        world.primary.halt()
        other.resume()
        with psycopg.connect(other.url("postgres"), autocommit=True) as asked:
            asked.execute("SELECT pg_promote()")
        world.served.settings["DATABASE_URL"] = other.url(SERVED_DATABASE)
        world.served.start()
        for _ in range(3):
            look = _look(world, "/api/v1/calls?limit=20")
            assert "lost-" not in look.text
            assert not _is_from_replica(look)
            time.sleep(1.1)  # it is left alone for a second after a look in vain
        assert "does not follow the server that took over" in world.served.manage("doctor").stdout
    finally:
        world.served.stop()
        other.stop()
        world.primary.resume()
        world.served.settings["DATABASE_URL"] = world.primary.url(SERVED_DATABASE)
        world.served.start()


def _refused_once_it_takes_writes(world: World) -> None:
    world.at_replica("SELECT pg_promote()")
    end = time.monotonic() + _PATIENCE_S
    while "takes writes of its own" not in world.served.log:
        assert time.monotonic() < end
        _look(world, "/calls/")
    _report(world.program, "after")
    assert "after" in _look(world, "/calls/").text
