"""Files of the spool that somebody cuts, moves or deletes while the server lives."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from helmdash.operations.recorder import Recorder, RecorderState
from helmdash.operations.recorder.files.orphaned_segments import adopt
from helmdash.queries.access.access import ProjectInfo
from tests.recorder.support import counts, expected, names, submit

Make = Callable[..., Recorder]
Stuck = Callable[[], AbstractContextManager[None]]


def cut_to_nothing(spool: Path) -> None:
    for path in spool.glob("*.ndjson"):
        os.truncate(path, 0)


def cut_in_a_line(spool: Path) -> None:
    for path in spool.glob("*.ndjson"):
        os.truncate(path, path.read_bytes().find(b"call-00002"))


def emptied_by_a_shell(spool: Path) -> None:
    for path in spool.glob("*.ndjson"):
        path.write_bytes(b"")


def deleted(spool: Path) -> None:
    for path in spool.glob("*.ndjson"):
        path.unlink()


def moved(spool: Path) -> None:
    for path in spool.glob("*.ndjson"):
        path.rename(spool.parent / "elsewhere")


def deleted_with_all_around_it(spool: Path) -> None:
    shutil.rmtree(spool)


HARM = [
    cut_to_nothing,
    cut_in_a_line,
    emptied_by_a_shell,
    deleted,
    moved,
    deleted_with_all_around_it,
]


def left_by_a_crash(spool: Path, tmp_path: Path) -> list[str]:
    """The calls that a process started after a crash at this moment would find."""
    copy = tmp_path / "copy"
    shutil.copytree(spool, copy)
    (found,) = adopt(copy)
    ids = [told.capture["id"] for told, _ in found.lines()]
    found.release()
    return ids


@pytest.mark.parametrize("payload", ["full", "redacted", "off"])
@pytest.mark.parametrize("harm", HARM)
def test_no_call_that_is_in_memory_is_lost(
    project: ProjectInfo,
    make_recorder: Make,
    stuck: Stuck,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    harm: Callable[[Path], None],
    payload: str,
) -> None:
    spool = tmp_path / "spool"
    project = replace(project, payload=payload)
    recorder = make_recorder()
    recorder.start()
    with stuck():
        submit(recorder, project, *range(6))
        harm(spool)
        # Also what is written before anybody notices.
        submit(recorder, project, 6)
        recorder.begin("under-way", project.id)
        recorder._intake.mend_files()
        submit(recorder, project, 7)
        held = left_by_a_crash(spool, tmp_path)

    assert sorted(held) == expected(*range(8))
    assert "was cut, moved or deleted" in caplog.text
    assert recorder.settle()
    assert names() == expected(*range(8))
    assert (counts(recorder).stored, counts(recorder).dropped) == (8, 0)


def test_what_waited_in_the_file_only_is_counted_as_lost_and_stops_nobody(
    project: ProjectInfo, make_recorder: Make, stuck: Stuck, tmp_path: Path
) -> None:
    recorder = make_recorder(queue_calls=3, batch_calls=2)
    recorder.start()
    with stuck():
        submit(recorder, project, *range(10))
        (path,) = (tmp_path / "spool").glob("*.ndjson")
        os.truncate(path, path.read_bytes().find(b"call-00006"))
        submit(recorder, project, 10, 11)
        recorder._intake.mend_files()

    assert recorder.settle()
    assert names() == expected(0, 1, 2, 3, 4, 5, 10, 11)
    assert (counts(recorder).stored, counts(recorder).dropped) == (8, 4)
    assert recorder.state() is RecorderState.STORING
    submit(recorder, project, 12)
    assert recorder.settle()
    recorder.stop()
    assert not list((tmp_path / "spool").glob("*.ndjson"))


def test_a_line_behind_a_cut_is_read_by_the_next_start(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    dead = make_recorder()
    dead._intake.open()
    submit(dead, project, 1, 2)
    (path,) = (tmp_path / "spool").glob("*.ndjson")
    os.truncate(path, path.read_bytes().find(b"call-00002"))
    submit(dead, project, 3)

    assert left_by_a_crash(tmp_path / "spool", tmp_path) == expected(1, 3)
