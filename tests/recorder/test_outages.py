"""The database goes away under load and comes back, or the process goes: nothing lost or doubled.

Real processes, which are killed; SQLite files that are moved away; a PostgreSQL of the test's own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import environment
from tests.support.postgres import Postgres, create_database
from tests.support.processes import Process, kill, run_python, spawn_python
from tests.support.template import copy_tables

# Each starts and ends several processes.
pytestmark = pytest.mark.slow

AWAY, AGAIN = "calls cannot be stored now", "calls are stored again"
# Taken in while the database is away: several groups of the writer's, so that it tries again.
MORE_CALLS = 200
_GAP = "0.004"


@dataclass(slots=True, kw_only=True)
class House:
    """A data directory with its database, and the processes that record into it."""

    data_dir: Path
    database_url: str = ""
    processes: list[Process] = field(default_factory=list)

    @property
    def database(self) -> Path:
        return self.data_dir / "helmdash.sqlite3"

    def run(self, mode: str) -> str:
        """Run a mode of the driver to its end; gives what it printed."""
        done = run_python("-m", "tests.recorder.driver", mode, env=self._environment(), timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def load(self, prefix: str) -> Process:
        """Start a process that records; returns when it has begun to."""
        return self.start(prefix, "load", prefix, _GAP, until=lambda: len(self.noted(prefix)) >= 50)

    def start(self, prefix: str, *mode: str, until: Callable[[], bool]) -> Process:
        """Start a process in a mode of the driver; returns when it has come so far."""
        process = spawn_python(
            *("-m", "tests.recorder.driver", *mode),
            log=self._log(prefix),
            env=self._environment(),
            forked=True,
        )
        self.processes.append(process)
        self.wait_for(prefix, until)
        return process

    def wait_for(self, prefix: str, is_so: Callable[[], bool]) -> None:
        """Until it is so; fails when the process has ended, or after a minute."""
        last = time.monotonic() + 60
        while not is_so():
            assert self.processes[-1].poll() is None, self.said(prefix)
            assert time.monotonic() < last, self.said(prefix)
            time.sleep(0.02)

    def wait_until_said(self, prefix: str, sentence: str) -> None:
        """Until the process has logged the sentence."""
        self.wait_for(prefix, lambda: sentence in self.said(prefix))

    def wait_for_more(self, prefix: str, count: int) -> None:
        """Until the recorder has taken in so many calls more than now."""
        enough = len(self.noted(prefix)) + count
        self.wait_for(prefix, lambda: len(self.noted(prefix)) >= enough)

    def wait_for_a_stored_call(self, prefix: str) -> None:
        """Until SQLite's file holds a call."""

        def is_there() -> bool:
            with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
                found = database.execute("SELECT EXISTS (SELECT 1 FROM records_call)").fetchone()
            return bool(found[0])

        self.wait_for(prefix, is_there)

    def said(self, prefix: str) -> str:
        """Everything the process printed and logged."""
        return self._log(prefix).read_text() if self._log(prefix).exists() else ""

    def noted(self, prefix: str) -> list[str]:
        """The ids of the calls that the recorder had taken in."""
        lines = self.said(prefix).split("\n")[:-1]
        return [line for line in lines if line.startswith(f"{prefix}-")]

    def stored(self) -> dict[str, Any]:
        """What is in the database."""
        found: dict[str, Any] = json.loads(self.run("list"))
        return found

    def spooled(self) -> list[str]:
        """The names of the files in the spool."""
        return sorted(path.name for path in (self.data_dir / "spool").iterdir())

    def _log(self, prefix: str) -> Path:
        return self.data_dir.with_suffix(f".{prefix}.log")

    def _environment(self) -> dict[str, str]:
        given = {"DATABASE_URL": self.database_url} if self.database_url else {}
        return {**environment.clean(), "HELMDASH_DATA_DIR": str(self.data_dir), **given}


@pytest.fixture(scope="module")
def ready_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a database in which nothing is recorded; to be copied."""
    made = House(data_dir=tmp_path_factory.mktemp("ready"))
    copy_tables(made.database, Path(os.environ["HELMDASH_DATA_DIR"]), environment.clean())
    made.run("setup")
    return made.data_dir


@pytest.fixture
def house(tmp_path: Path, ready_made: Path) -> Iterator[House]:
    """On SQLite."""
    made = House(data_dir=tmp_path / "data")
    shutil.copytree(ready_made, made.data_dir)
    yield made
    for process in made.processes:
        kill(process)


def assert_everything_is_stored_once(house: House, *prefixes: str) -> dict[str, Any]:
    noted = [name for prefix in prefixes for name in house.noted(prefix)]
    found = house.stored()
    assert found["calls"] == sorted(found["calls"])
    assert_all_once(found, noted, processes=len(prefixes))
    return found


def assert_all_once(found: dict[str, Any], noted: Sequence[str], *, processes: int) -> None:
    """All calls are stored, each once, their conversations are numbered without a gap, and the
    ledger agrees."""
    assert found["ledger"]["stored"] == len(found["calls"])
    assert_every_row_adds_up(found)
    # A kill may come between taking a call in and noting it here.
    missing = set(noted) - set(found["calls"])
    assert not missing
    assert len(set(found["calls"])) == len(found["calls"]) <= len(noted) + processes
    assert found["generations"] == len(found["calls"]) == found["held"]
    assert found["integrity"] == "ok"
    total = found["ledger"]
    settled = total["stored"] + total["duplicate"] + total["rejected"] + total["dropped"]
    assert total["accepted"] == settled + total["waiting"]
    assert (total["rejected"], total["dropped"], total["waiting"]) == (0, 0, 0)


def assert_every_row_adds_up(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        settled = row["stored"] + row["duplicate"] + row["rejected"] + row["dropped"]
        assert row["accepted"] == settled + row["waiting"], row


def end(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_a_killed_process_loses_no_call_and_the_next_says_how_many_were_under_way(
    house: House,
) -> None:
    process = house.load("a")
    house.wait_for_a_stored_call("a")
    kill(process)
    at_the_kill = house.stored()
    said = house.run("wait")

    # Before anybody follows, the row of the killed process counts what it stored, all of it.
    assert at_the_kill["ledger"]["stored"] == len(at_the_kill["calls"]) > 0
    assert_every_row_adds_up(at_the_kill)
    found = assert_everything_is_stored_once(house, "a")
    assert "3 calls were under way when the previous process crashed" in said or (
        "4 calls were under way" in said  # one more, between its start and its end
    )
    assert found["ledger"]["in_flight_lost"] in (3, 4)
    # The rows are newest first: the loss is of the process that was killed, not its heir's.
    assert [row["in_flight_lost"] > 0 for row in found["rows"]] == [False, True]
    assert found["running"] == 0
    assert house.spooled() == []


def test_a_process_that_is_asked_to_end_stores_what_waits(house: House) -> None:
    process = house.load("a")
    end(process)

    found = assert_everything_is_stored_once(house, "a")
    assert found["ledger"]["stored"] == len(found["calls"])
    assert found["ledger"]["in_flight_lost"] == 0
    assert house.spooled() == []


def test_a_process_that_is_killed_in_the_middle_of_a_job_leaves_the_rest_to_another(
    house: House,
) -> None:
    house.run("expire")
    kill(house.start("k", "retain", "slowly", until=lambda: "deleted" in house.said("k")))
    half_done = house.stored()
    told = house.run("retain").splitlines()

    assert house.said("k") == "deleted 30\n"
    assert (half_done["calls"], half_done["generations"]) == ([], 30)
    # While the lease of the killed one runs, nobody else begins; nothing is deleted twice after it.
    assert told == ["killed  ", "heir done deleted 0 calls, 30 conversations, the texts of 0 calls"]
    assert house.stored()["generations"] == 0


def move_all(database: Path, away: Path) -> Callable[[], None]:
    """The file and its log, as somebody does who knows SQLite."""
    parts = [p for p in database.parent.iterdir() if p.name.startswith(database.name)]
    away.mkdir()
    for part in parts:
        part.rename(away / part.name)

    def put_back() -> None:
        for part in parts:
            (away / part.name).rename(part)

    return put_back


def move_file(database: Path, away: Path) -> Callable[[], None]:
    """The file alone; its log stays."""
    database.rename(away)

    def put_back() -> None:
        away.rename(database)

    return put_back


def replace_by_copy(database: Path, away: Path) -> Callable[[], None]:
    """The file is taken, and what comes back is a copy: another file at the same path."""
    database.rename(away)

    def put_back() -> None:
        shutil.copy(away, database.with_suffix(".copy"))
        database.with_suffix(".copy").rename(database)
        away.unlink()

    return put_back


@pytest.mark.parametrize("take_away", [move_all, move_file, replace_by_copy])
def test_the_sqlite_file_is_taken_away_and_put_back(
    house: House, tmp_path: Path, take_away: Callable[[Path, Path], Callable[[], None]]
) -> None:
    process = house.load("a")
    put_back = take_away(house.database, tmp_path / "away")
    house.wait_until_said("a", AWAY)
    house.wait_for_more("a", MORE_CALLS)
    made_anew = house.database.exists()
    put_back()
    house.wait_until_said("a", AGAIN)
    end(process)

    assert not made_anew
    found = assert_everything_is_stored_once(house, "a")
    assert found["ledger"]["duplicate"] == 0
    assert "Traceback" not in house.said("a")


def test_killed_while_the_database_is_away_the_spool_has_everything(
    house: House, tmp_path: Path
) -> None:
    process = house.load("a")
    put_back = move_all(house.database, tmp_path / "away")
    house.wait_for_more("a", MORE_CALLS)
    kill(process)
    put_back()
    following = house.load("b")
    end(following)

    found = assert_everything_is_stored_once(house, "a", "b")
    assert found["ledger"]["in_flight_lost"] in (3, 4)
    assert "calls were under way" in house.said("b")
    assert house.spooled() == []


def test_two_hosts_share_a_postgresql_that_is_stopped_and_one_of_them_is_killed(
    tmp_path: Path, server: Postgres
) -> None:
    url = create_database(server.url("postgres"), "outage")
    house, other = (House(data_dir=tmp_path / name, database_url=url) for name in ("one", "two"))
    house.run("setup")
    killed, process = other.load("k"), house.load("a")
    server.halt()
    house.wait_until_said("a", AWAY)
    house.wait_for_more("a", MORE_CALLS)
    kill(killed)
    server.resume()
    house.wait_until_said("a", AGAIN)
    # Its disk goes to a machine of another name; the first host goes on meanwhile.
    noted = other.noted("k")
    moved = House(data_dir=tmp_path / "moved", database_url=url)
    (other.data_dir).rename(moved.data_dir)
    moved.run("wait")
    end(process)

    found = house.stored()
    assert_all_once(found, [*house.noted("a"), *noted], processes=2)
    assert found["running"] == 0
    assert found["ledger"]["in_flight_lost"] in (3, 4)
    assert "Traceback" not in house.said("a")
    assert [os.listdir(each.data_dir / "spool") for each in (house, moved)] == [[], []]
