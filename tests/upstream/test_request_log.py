"""The request log: lines that survive full disks, midnight, rotation and the end of a process."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from helmdash.upstream.logs.log_files import prune
from helmdash.upstream.logs.request_log import LogEntry, LoggedError, RequestLog
from tests.support import ROOT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "ollama"


@pytest.fixture
def log(folder: Path) -> Iterator[RequestLog]:
    log = RequestLog(folder)
    yield log
    log.close()


def entry(number: int = 0, *, at: datetime = NOON, **over: Any) -> LogEntry:
    return LogEntry(at=at, request_id=f"id-{number}", model="m", **over)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ids_in(folder: Path) -> list[str]:
    """The ids of all files, whole lines only."""
    return [line["requestId"] for path in sorted(folder.iterdir()) for line in lines_of(path)]


def test_a_line_is_in_its_file_within_a_moment(log: RequestLog, folder: Path) -> None:
    log.add(entry())

    deadline = time.monotonic() + 30
    path = folder / "ollama-2026-03-01.jsonl"
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)

    assert lines_of(path)[0]["requestId"] == "id-0"


def test_only_the_owner_may_look(log: RequestLog, folder: Path) -> None:
    log.add(entry())
    assert log.flush()

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "ollama-2026-03-01.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_day_is_that_of_the_entry_in_utc(log: RequestLog, folder: Path) -> None:
    tokyo = timezone(timedelta(hours=9))
    log.add(entry(1, at=datetime(2026, 3, 2, 8, 59, tzinfo=tokyo)))
    log.add(entry(2, at=datetime(2026, 3, 2, 9, tzinfo=tokyo)))
    log.add(entry(3, at=datetime(2026, 3, 1, 23, 59, tzinfo=UTC)))
    log.flush()

    assert [line["requestId"] for line in lines_of(folder / "ollama-2026-03-01.jsonl")] == [
        "id-1",
        "id-3",
    ]
    assert [line["requestId"] for line in lines_of(folder / "ollama-2026-03-02.jsonl")] == ["id-2"]


def test_full_files_are_followed_by_numbered_ones(folder: Path) -> None:
    line = len(json.dumps(entry().to_json(), separators=(",", ":"))) + 1
    log = RequestLog(folder, max_bytes=3 * line + 5)
    for number in range(8):
        log.add(entry(number))
        log.flush()  # one file for many flushes, too
    log.close()

    sizes = {path.name: len(lines_of(path)) for path in folder.iterdir()}
    assert sizes == {
        "ollama-2026-03-01.jsonl": 3,
        "ollama-2026-03-01.1.jsonl": 3,
        "ollama-2026-03-01.2.jsonl": 2,
    }
    again = RequestLog(folder, max_bytes=3 * line + 5)
    again.add(entry(8))
    again.close()
    assert len(lines_of(folder / "ollama-2026-03-01.2.jsonl")) == 3


def test_old_days_are_deleted_and_nothing_else(folder: Path) -> None:
    folder.mkdir(parents=True)
    names = {
        "ollama-2026-02-15.jsonl": False,  # fourteen days
        "ollama-2026-02-15.3.jsonl": False,
        "ollama-2026-02-16.jsonl": True,
        "ollama-2026-02-30.jsonl": True,  # no day
        "other-2020-01-01.jsonl": True,
        "ollama-2020-01-01.jsonl.gz": True,
    }
    for name in names:
        (folder / name).touch()

    log = RequestLog(folder, keep_days=14)
    log.add(entry())
    log.close()

    assert {name: (folder / name).exists() for name in names} == names


def test_pruning_a_folder_that_is_not_there_is_no_error(folder: Path) -> None:
    assert prune(folder, today=date(2026, 3, 1), keep_days=1) == 0


def test_secrets_are_masked_and_messages_short(log: RequestLog, folder: Path) -> None:
    chunk = {"id": "a", "source": "mail of someone@example.org", "included": True}
    error = LoggedError(
        code="http_500", message="token=abcdefghijkl\nBearer abcdefghijklmnop " + "x" * 5000
    )
    log.add(entry(chunk_manifest=(chunk,), error=error))
    log.flush()

    (line,) = lines_of(folder / "ollama-2026-03-01.jsonl")
    assert line["chunkManifest"][0]["source"] == "mail of [email]"
    assert "abcdef" not in line["error"]["message"]
    assert len(line["error"]["message"]) <= 300
    assert set(line["error"]) == {"code", "message"}
    assert line["actualPromptTokens"] is None


def test_entries_outlast_a_disk_that_fails(tmp_path: Path) -> None:
    folder = tmp_path / "ollama"
    folder.write_text("a file stands where the folder should be")
    log = RequestLog(folder)
    for number in range(5):
        log.add(entry(number))

    assert not log.flush()
    folder.unlink()
    assert log.flush()

    log.close()
    assert ids_in(folder) == [f"id-{number}" for number in range(5)]


def test_a_line_that_was_written_in_part_comes_again_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RequestLog(folder)
    real, calls = os.write, []

    def full_disk(handle: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 2:
            return real(handle, data[:10])
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "no space")
        return real(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk)
        for number in range(3):
            log._waiting.append(entry(number))  # without its thread, which would write by itself
        results = [log.flush(), log.flush(), log.flush()]
    log.close()

    assert results == [False, False, True]
    text = (folder / "ollama-2026-03-01.jsonl").read_text(encoding="utf-8")
    whole = [json.loads(line)["requestId"] for line in text.splitlines() if line.endswith("}")]
    assert whole == ["id-0", "id-1", "id-2"]
    assert len(text.splitlines()) == 4


def test_a_log_that_is_moved_away_goes_on_in_a_new_file(log: RequestLog, folder: Path) -> None:
    log.add(entry(1))
    log.flush()
    path = folder / "ollama-2026-03-01.jsonl"
    path.rename(folder / "kept")

    log.add(entry(2))
    log.flush()

    assert [line["requestId"] for line in lines_of(path)] == ["id-2"]


def test_what_no_json_can_hold_stands_in_nobodys_way(log: RequestLog, folder: Path) -> None:
    log.add(entry(1, chunk_manifest=({"id": object()},)))
    log.add(entry(2, conversation="half \ud83d of a character"))
    assert log.flush()

    first, second = lines_of(folder / "ollama-2026-03-01.jsonl")
    assert first["error"] == {"code": "unwritable"}
    assert second["requestId"] == "id-2"


def test_many_threads_lose_nothing(log: RequestLog, folder: Path) -> None:
    def write(first: int) -> None:
        for number in range(first, first + 100):
            log.add(entry(number))

    threads = [threading.Thread(target=write, args=(first,)) for first in range(0, 800, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()

    assert sorted(ids_in(folder)) == sorted(f"id-{number}" for number in range(800))


def test_the_queue_has_an_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "ollama"
    blocked.touch()
    log = RequestLog(blocked)
    for number in range(10_050):
        log.add(entry(number))
    blocked.unlink()
    log.close()

    assert len(ids_in(blocked)) == 10_000
    assert "50 lines of the request log were lost" in caplog.text


def test_processes_write_beside_each_other_and_at_their_end(folder: Path) -> None:
    """Each ends right after its last entry: what waits is written at exit."""
    code = textwrap.dedent(
        f"""
        import sys
        from datetime import UTC, datetime
        from pathlib import Path
        from helmdash.upstream.logs.request_log import LogEntry, RequestLog
        log = RequestLog(Path({str(folder)!r}), max_bytes=20_000)
        for number in range(200):
            log.add(LogEntry(at=datetime(2026, 3, 1, tzinfo=UTC),
                             request_id=f"{{sys.argv[1]}}-{{number}}", model="m"))
        """
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, name], cwd=ROOT) for name in ("a", "b")
    ]

    assert [process.wait(60) for process in running] == [0, 0]
    wanted = [f"{name}-{number}" for name in "ab" for number in range(200)]
    assert sorted(ids_in(folder)) == sorted(wanted)
    assert len(list(folder.iterdir())) <= 6  # 400 lines of some 230 bytes


def test_a_close_is_heard_whatever_the_thread_is_doing(tmp_path: Path) -> None:
    for delay in (0.0, 0.02, 0.05, 0.08):
        log = RequestLog(tmp_path / str(delay))
        log.add(entry())
        time.sleep(delay)
        began = time.monotonic()
        log.close(10)

        assert time.monotonic() - began < 5
        assert ids_in(tmp_path / str(delay)) == ["id-0"]
