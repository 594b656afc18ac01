"""A disk that is full: calls go on to be safe, at worst without their texts, or are not made."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from helmdash.operations.recorder import Recorder, RecorderState
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call
from tests.factories import NOW
from tests.recorder.support import call, counts, expected, names, submit

Make = Callable[..., Recorder]
Hold = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function from which on no file gets room."""

    def refuse(handle: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr(os, "posix_fallocate", refuse)


def killed(recorder: Recorder) -> None:
    """Nothing more comes of it, and its files are free, as after a SIGKILL."""
    intake = recorder._intake
    with intake._lock:
        intake._queue.clear()
        intake._is_closed = True
        handle, intake._spool._lock_handle = intake._spool._lock_handle, None
    assert handle is not None
    os.close(handle)


@pytest.mark.one_database  # what is kept of a call is the files', and takes three seconds
def test_calls_that_a_full_disk_took_survive_a_kill_at_worst_without_texts(
    project: ProjectInfo, make_recorder: Make, fill_the_disk: Callable[[], None]
) -> None:
    dead = make_recorder()
    dead._intake.open()
    submit(dead, project, 0, content="x" * 1_000_000)
    fill_the_disk()
    taken = 1
    while dead.takes_calls and taken < 10_000:
        submit(dead, project, taken, content="x" * 500_000)
        taken += 1
    assert taken > 300  # what is kept back has room for so many
    killed(dead)

    heir = make_recorder()
    heir.start()
    assert heir.settle()
    assert names() == expected(*range(taken))
    texts = dict(Call.objects.values_list("name", "payload__content"))
    assert texts["call-00000"] is not None
    assert texts[f"call-{taken - 1:05d}"] is None


def test_texts_are_stored_with_a_full_disk_while_the_database_takes_them(
    project: ProjectInfo, make_recorder: Make, fill_the_disk: Callable[[], None]
) -> None:
    recorder = make_recorder()
    recorder.start()
    fill_the_disk()
    submit(recorder, project, *range(20), content="x" * 300_000)

    assert recorder.settle()
    assert names() == expected(*range(20))
    assert None not in Call.objects.values_list("payload__content", flat=True)
    assert counts(recorder).dropped == 0


def test_where_no_file_takes_a_call_it_is_told_when_the_database_has_it(
    project: ProjectInfo, make_recorder: Make, stuck: Hold, fill_the_disk: Callable[[], None]
) -> None:
    fill_the_disk()
    patient, hasty = make_recorder(timeout=20), make_recorder(timeout=0.3)
    patient.start()
    hasty.start()
    assert patient.takes_calls

    unkept = patient.submit(project, "owner", call(1), NOW)
    assert unkept is not None
    assert asyncio.run(patient.is_kept(unkept))
    assert names() == expected(1)

    with stuck():
        unkept = hasty.submit(project, "owner", call(2), NOW)
        assert unkept is not None
        assert not asyncio.run(hasty.is_kept(unkept))
    assert hasty.settle()


def test_no_call_is_taken_where_neither_disk_nor_database_takes_it(
    project: ProjectInfo,
    make_recorder: Make,
    monkeypatch: pytest.MonkeyPatch,
    fill_the_disk: Callable[[], None],
) -> None:
    fill_the_disk()
    recorder = make_recorder()
    recorder.start()
    monkeypatch.setattr(type(recorder._writer), "is_unavailable", property(lambda _: True))
    full = (recorder.takes_calls, recorder.state())
    monkeypatch.undo()
    recorder._intake.keep_room()

    assert full == (False, RecorderState.FULL)
    assert (recorder.takes_calls, recorder.state()) == (True, RecorderState.STORING)


def test_room_is_kept_back_as_long_as_a_process_lives_and_no_longer(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    dead = make_recorder()
    dead._intake.open()
    (spare,) = (tmp_path / "spool").glob("*.spare")
    spare.unlink()
    dead._intake.keep_room()
    assert spare.stat().st_blocks * 512 >= 2 * 1024 * 1024
    killed(dead)

    heir = make_recorder()
    heir.start()
    submit(heir, project, 1)
    assert heir.settle()
    assert list((tmp_path / "spool").glob("*.spare")) == [tmp_path / "spool" / f"{heir.name}.spare"]
    heir.stop()
    assert list((tmp_path / "spool").iterdir()) == []
