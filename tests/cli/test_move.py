"""Moving to PostgreSQL: stopped in the middle, taken up again, and every value is there."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from helmdash.conf import BadSetting, Env
from helmdash.operations.backup import sqlite
from helmdash.operations.moving import MoveProblem, move, moving
from helmdash.places import UNFINISHED_MOVE, look_at_schema
from tests.cli.test_backup import LOOK, SEALED, SEED, done, python
from tests.recorder.test_outages import House, assert_every_row_adds_up
from tests.support import ROOT, environment, needs
from tests.support.postgres import NoPostgres, Postgres, create_database
from tests.support.processes import kill
from tests.support.template import copy_tables


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL server of this module's own: this run is on SQLite."""
    try:
        running = Postgres.start()
    except NoPostgres as error:
        needs.missing("PostgreSQL", str(error))
    yield running
    running.stop()


@pytest.fixture
def url(server: Postgres) -> str:
    """An empty database."""
    return create_database(server.url("postgres"), f"move_{uuid4().hex}")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A HelmDash on SQLite, with nothing in it."""
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    run = Path(os.environ["HELMDASH_DATA_DIR"])
    copy_tables(data_dir / "helmdash.sqlite3", run, environment.clean())
    made = House(data_dir=data_dir)
    yield made
    for process in made.processes:
        kill(process)


def env_of(house: House, url: str = "") -> Env:
    return Env(data_dir=house.data_dir, database_url=url)


def no_word(words: str) -> None:
    """A progress that nobody looks at."""


def stop_at(table: str, *, after: int) -> Callable[[str], None]:
    """A progress that interrupts as Ctrl-C does, once so many rows of a table are there."""

    def progress(words: str) -> None:
        if words.startswith(f"{table}: ") and int(words.split()[1].replace(",", "")) >= after:
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
def test_a_move_that_was_stopped_goes_on_and_all_is_there(
    house: House, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "_ROWS", 50)
    python(house, SEED)
    done(house, "manage.py", "demo", "load")
    process = house.load("a")
    with pytest.raises(MoveProblem, match="a server is running"):
        move(url, env=env_of(house), progress=no_word)
    kill(process)

    make, made = moving._migrate, []

    def make_and_end(url: str) -> None:
        make(url)
        made.append(url)
        if len(made) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(moving, "_migrate", make_and_end)
    for _ in range(2):  # among the tables, and among their rows
        with pytest.raises(KeyboardInterrupt):
            move(url, env=env_of(house), progress=stop_at("records_call", after=50))
    assert made == [url, url]
    with pytest.raises(BadSetting, match="a move into it is not finished"):
        look_at_schema(env_of(house, url))
    with psycopg.connect(url, autocommit=True) as target:
        target.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('x', 'y', now())"
        )
        with pytest.raises(MoveProblem, match="begun by another release"):
            move(url, env=env_of(house), progress=no_word)
        target.execute("DELETE FROM django_migrations WHERE app = 'x'")

    # The file was written to meanwhile: what was copied of it is out of date.
    python(house, "from django.contrib.auth.models import User\n"
                  "User.objects.update(first_name='Renamed')")  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        move(url, env=env_of(house), progress=stop_at("records_call", after=100))
    before = digest(house.database)
    said = done(house, "manage.py", "move", "--to", url)

    assert "of them from a try before" in said
    assert digest(house.database) == before
    assert_same_rows(house.database, url)
    with psycopg.connect(url) as target:
        assert target.execute("SELECT first_name FROM auth_user").fetchall() == [("Renamed",)]
        assert target.execute(f"SELECT to_regclass('{UNFINISHED_MOVE}')").fetchone() == (None,)
    assert f"Moved {total(url):,} rows" in said

    listed, _, looked = python(House(data_dir=house.data_dir, database_url=url), LOOK).partition(
        "\n"
    )
    found, seen = json.loads(listed), json.loads(looked)
    assert set(house.noted("a")) <= set(found["calls"])
    assert len(found["calls"]) == len(set(found["calls"]))
    assert_every_row_adds_up(found)
    assert (found["ledger"]["waiting"], found["ledger"]["rejected"]) == (0, 0)
    assert (seen["key"], seen["signed in"], seen["sealed"]) == ("kept", True, SEALED)

    refused = done(house, "manage.py", "move", "--to", url, code=1)
    assert "there are tables in it already" in refused
    assert refused.count("\n") == 1


def test_what_was_written_while_somebody_reads_begins_the_copy_anew(
    house: House, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader keeps what is written after it in the log, and the file's own age as it was."""
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.1)  # for the reader to end, who does not
    python(house, SEED)
    rename = "UPDATE auth_user SET first_name = ?"
    with closing(sqlite3.connect(house.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM auth_user").fetchone()
        for name in ("before", "after"):
            with closing(sqlite3.connect(house.database)) as writer:
                writer.execute(rename, [name])
                writer.commit()
            if name == "before":
                with pytest.raises(KeyboardInterrupt):
                    move(url, env=env_of(house), progress=stop_at("records_budget", after=0))

        assert move(url, env=env_of(house), progress=no_word).resumed == 0

    with psycopg.connect(url) as target:
        assert target.execute("SELECT first_name FROM auth_user").fetchall() == [("after",)]


def test_a_second_move_at_once_leaves_what_the_first_has_finished(house: House, url: str) -> None:
    """It waits for the file, and looks at the database again when it has it."""
    python(house, SEED)
    with ThreadPoolExecutor(1) as threads, psycopg.connect(url, autocommit=True) as looking:
        second: list[Future[object]] = []

        def begin_another(words: str) -> None:
            if second or not words.startswith("auth_permission"):
                return
            second.append(threads.submit(move, url, env=env_of(house), progress=no_word))
            others = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = %s"
            while looking.execute(others, ["helmdash-move"]).fetchone() != (2,):
                time.sleep(0.02)
            time.sleep(0.3)  # for its first looks, which take milliseconds

        move(url, env=env_of(house), progress=begin_another)
        with pytest.raises(MoveProblem, match="there are tables in it already"):
            second[0].result(90)


def test_who_makes_the_tables_ends_with_who_asked(url: str) -> None:
    where = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "helmdash.settings"}
    making = subprocess.Popen(
        [sys.executable, "-m", "helmdash.cli.making_tables"],
        cwd=ROOT,
        env={**environment.clean(), **where},
        stdin=subprocess.PIPE,
    )
    assert making.stdin is not None
    making.stdin.close()  # as it closes when its parent is killed

    assert making.wait(60) == 1
    with psycopg.connect(url) as target:
        assert "records_call" not in tables(target)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("sqlite:////tmp/x.sqlite3", "must start with postgres://"),
        ("postgres://u:sekret@127.0.0.1:1/x", "refused"),
        ("postgres://u:sekret@h", "names no database"),
    ],
)
def test_a_target_that_cannot_be_is_one_line_without_its_password(
    house: House, target: str, sentence: str
) -> None:
    said = done(house, "manage.py", "move", "--to", target, code=1)

    assert sentence in said
    assert said.count("\n") == 1
    assert "sekret" not in said


def test_a_foreign_table_and_a_source_on_postgresql_are_refused(house: House, url: str) -> None:
    with pytest.raises(MoveProblem, match="DATABASE_URL leads to PostgreSQL"):
        move(url, env=env_of(house, url), progress=no_word)
    with psycopg.connect(url, autocommit=True) as target:
        target.execute("CREATE TABLE notes (id int)")

        with pytest.raises(MoveProblem, match="there are tables in it already"):
            move(url, env=env_of(house), progress=no_word)

        assert target.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
                              ).fetchone() == (1,)  # fmt: skip


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def total(url: str) -> int:
    with psycopg.connect(url) as target:
        return sum(len(rows_of(target, table)) for table in tables(target))


def tables(target: psycopg.Connection[Any]) -> list[str]:
    found = target.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    return sorted(name for (name,) in found if name != "django_migrations")


def rows_of(target: psycopg.Connection[Any], table: str) -> list[dict[str, Any]]:
    with target.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute(f'SELECT * FROM "{table}"'.encode()).fetchall()


def assert_same_rows(file: Path, url: str) -> None:
    """Every value of the file is in the database, as what it means."""
    with psycopg.connect(url) as target, closing(sqlite3.connect(file)) as source:
        source.row_factory = sqlite3.Row
        for table in tables(target):
            found = rows_of(target, table)
            told = [
                {name: meant(row[name], found, name) for name in dict(row)}
                for row in source.execute(f'SELECT * FROM "{table}"')
            ]
            assert sorted(told, key=in_words) == sorted(
                ({name: plain(value) for name, value in row.items()} for row in found),
                key=in_words,
            ), table


def in_words(row: dict[str, Any]) -> str:
    """What rows are sorted by: columns, and members of JSON, stand in another order in each
    database."""
    return json.dumps(row, sort_keys=True, default=str)


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def meant(value: Any, found: list[dict[str, Any]], name: str) -> Any:
    """A value of SQLite's as PostgreSQL's driver would give it."""
    kinds = {type(row[name]) for row in found if row[name] is not None}
    if value is None:
        return None
    if kinds == {bool}:
        return bool(value)
    if kinds == {datetime}:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    if isinstance(value, str) and not kinds <= {str}:
        return json.loads(value)
    return value
