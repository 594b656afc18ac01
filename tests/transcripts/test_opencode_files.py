"""opencode's databases and files as no opencode leaves them: damaged, or made by somebody else."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from helmdash.transcripts.importing import AgentSummary
from tests.transcripts.test_readers import Receiver, importer_of

FOLDER = Path(".local", "share", "opencode")
# Of each 300 such files some lead SQLite in a circle, and some name a table in no UTF-8.
DAMAGED = 300


def message(number: int = 0, **over: Any) -> str:
    told = {
        "role": "assistant",
        "modelID": "m",
        "time": {"created": 1_764_240_000_000 + number, "completed": 1_764_240_001_000 + number},
        "tokens": {"input": 10, "output": 5},
    }
    return json.dumps({**told, **over})


def make_database(home: Path, *, messages: Any = (), sessions: Any = ()) -> Path:
    path = home / FOLDER / "opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE message (id, session_id, data)")
        database.execute("CREATE TABLE session (id, parent_id, title)")
        database.executemany("INSERT INTO message VALUES (?, ?, ?)", messages)
        database.executemany("INSERT INTO session VALUES (?, ?, ?)", sessions)
    return path


def read(home: Path) -> tuple[set[str], AgentSummary]:
    """The ids that came, and what the summary says."""
    receiver = Receiver()
    importer = importer_of(home, receiver, agents=["opencode"])
    importer.run()
    return set(receiver.stored), importer.summaries["opencode"]


@pytest.mark.parametrize("odd", [None, 5, 1.5, b"\xff\xfe", "a\x00b", "", "x" * 5_000])
def test_a_value_of_another_kind_harms_no_other_message(tmp_path: Path, odd: object) -> None:
    for place in range(3):
        row: list[object] = ["odd", "odd", message(1)]
        row[place] = odd
        make_database(
            tmp_path,
            messages=[row, ("good", "s", message(2))],
            sessions=[("s", odd, odd), (odd, "s", odd), ("odd", odd, "x (fork #1)")],
        )

        assert "opencode:good" in read(tmp_path)[0]


def test_a_text_that_is_not_utf_8_harms_no_other_message(tmp_path: Path) -> None:
    path = make_database(tmp_path, messages=[("first", "s", message(1))])
    with closing(sqlite3.connect(path)) as database, database:
        for column in ("CAST(x'ff' AS TEXT), 's', '{}'", "'odd', 's', CAST(x'7bff' AS TEXT)"):
            database.execute(f"INSERT INTO message VALUES ({column})")
        database.execute("INSERT INTO message VALUES ('last', 's', ?)", (message(2),))

    assert {"opencode:first", "opencode:last"} <= read(tmp_path)[0]


def test_a_damaged_database_is_named_and_comes_to_an_end(tmp_path: Path) -> None:
    rows = [(f"m{number}", "s", message(number)) for number in range(5)]
    path = make_database(tmp_path, messages=rows, sessions=[("s", "p", "x (fork #1)")])
    whole = path.read_bytes()

    for seed in range(DAMAGED):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 40)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.randrange(len(damaged))] if seed % 3 == 0 else damaged)

        for reason in read(tmp_path)[1].unreadable:
            assert str(path) in reason


@pytest.mark.parametrize("name", ["message", "session"])
def test_a_view_that_goes_on_for_ever_is_not_asked(tmp_path: Path, name: str) -> None:
    path = make_database(tmp_path, messages=[("good", "s", message())])
    columns = "n AS rowid, n AS id, 's' AS session_id, 'p' AS parent_id, '(fork #1)' AS title"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"DROP TABLE {name}")
        database.execute(
            f"CREATE VIEW {name} AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"
            f" SELECT {columns}, '{{}}' AS data FROM t"
        )

    stored, summary = read(tmp_path)

    if name == "message":
        assert summary.unreadable == [f"{path}: has no table of messages"]
    else:
        assert stored == {"opencode:good"}


@pytest.mark.parametrize("content", [b"", b"\x00" * 900, message().encode()[:40], b"[" * 100_000])
def test_a_file_that_holds_no_message_is_counted(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / FOLDER / "storage" / "message" / "s" / "m.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    assert read(tmp_path)[1].left_out == {"unreadable files": 1}
