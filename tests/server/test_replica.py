"""A replica of PostgreSQL's, which the database streams to, and a HelmDash that reads from it.

Who reads misses nothing that was committed before, wherever it is read from.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
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
READS = ("calls?limit=20", "calls/call-7", "conversations", "conversations/talk-1", "calls/export")
# Of a page: how long ago things were differs from look to look.
_NAMES = re.compile(r"(?:call|talk)-\d+|\d[\d,]* calls?")
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A HelmDash, a person and a program who ask it, and its replica."""

    served: Served
    person: httpx.Client
    program: httpx.Client
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
        yield World(served=served, person=person, program=program, replica=replica)


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


def _looks(world: World) -> dict[str, httpx.Response]:
    reads = {f"/api/v1/{path}": world.program for path in READS}
    return {
        path: client.get(path)
        for path, client in {**dict.fromkeys(PAGES, world.person), **reads}.items()
    }


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def _told(looks: dict[str, httpx.Response]) -> dict[str, object]:
    """What they tell: all that is JSON, and of pages what they are about."""
    assert {path: look.status_code for path, look in looks.items()} == dict.fromkeys(looks, 200)
    return {
        path: look.text if path.startswith("/api/") else _NAMES.findall(look.text)
        for path, look in looks.items()
    }


def _is_from_replica(look: httpx.Response) -> bool:
    return bool(look.headers.get(HEADER) == "replica")


def test_reads_come_from_the_replica_while_it_has_all_and_else_from_the_primary(
    world: World,
) -> None:
    """One walk: to set the servers up takes longer than all of it."""
    _same_from_either_and_without_it(world)
    _nothing_missed_however_far_behind(world)
    _refused_once_it_takes_writes(world)


def _same_from_either_and_without_it(world: World) -> None:
    _until(lambda: _is_from_replica(world.person.get("/calls/")))
    beside = _looks(world)
    world.replica.halt()
    try:
        alone = _looks(world)
        doctor = world.served.manage("doctor").stdout
        told = world.usable()
    finally:
        world.replica.resume()

    assert _told(alone) == _told(beside)
    assert not any(map(_is_from_replica, alone.values()))
    # The export is asked for while it is sent; whatever else does not read there, decides.
    assert [path for path, look in beside.items() if not _is_from_replica(look)] == [
        "/api/v1/calls/export"
    ]
    assert "HELMDASH_REPLICA_URL: it cannot be reached" in doctor
    assert told == 0
    _until(lambda: _is_from_replica(world.person.get("/calls/")))
    assert "cannot be reached" not in world.person.get("/settings/recorder/").text


def _nothing_missed_however_far_behind(world: World) -> None:
    sources = []

    def write_and_read(name: str) -> None:
        _report(world.program, name)
        look = world.program.get(f"/api/v1/calls/{name}")
        assert look.status_code == 200
        sources.append(_is_from_replica(look))

    for n in range(20):
        write_and_read(f"soon-{n}")
    assert any(sources)
    world.at_replica("SELECT pg_wal_replay_pause()")
    sources.clear()
    for n in range(3):
        write_and_read(f"paused-{n}")
        assert f"paused-{n}" in world.person.get("/calls/").text
    assert not any(sources)
    assert world.usable() == 0
    world.at_replica("SELECT pg_wal_replay_resume()")
    _until(lambda: _is_from_replica(world.program.get("/api/v1/calls/paused-2")))


def _refused_once_it_takes_writes(world: World) -> None:
    world.at_replica("SELECT pg_promote()")

    _until(lambda: not _is_from_replica(world.person.get("/calls/")))
    _report(world.program, "after")
    assert "after" in world.person.get("/calls/").text
    assert "takes writes of its own" in world.served.log
