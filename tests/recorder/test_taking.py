"""What is being taken to be stored is seen by who looks, at each moment of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

import pytest

from helmdash.operations.recorder import Recorder
from helmdash.operations.recorder.files.units import Outcome, Unit, reported
from helmdash.operations.recorder.intake import Intake
from helmdash.queries.access.access import ProjectInfo
from tests.factories import NOW
from tests.recorder.support import call, expected, names, submit

Make = Callable[..., Recorder]
CALLS = 7


def taken(intake: Intake, look: Callable[[], None]) -> list[Unit]:
    """What it takes, with a look before each line of it at which others are let in."""

    def before_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and not intake._lock.locked():
            look()
        return before_line

    def at_call(frame: FrameType, event: str, _: Any) -> Any:
        is_its = frame.f_globals.get("__name__") == Intake.__module__
        return before_line if is_its else None

    earlier = sys.gettrace()
    sys.settrace(at_call)
    try:
        return intake.take()
    finally:
        sys.settrace(earlier)


def fill_memory(make: Make, project: ProjectInfo) -> Recorder:
    recorder = make(batch_calls=2)
    recorder._intake.open()
    submit(recorder, project, *range(CALLS))
    return recorder


def fill_spool(make: Make, project: ProjectInfo) -> Recorder:
    recorder = make(batch_calls=2, queue_calls=1)
    recorder._intake.open()
    submit(recorder, project, *range(CALLS))
    return recorder


def die_with_some(make: Make, project: ProjectInfo) -> Recorder:
    """What a process left is read back before what came since."""
    dead = make()
    dead._intake.open()
    submit(dead, project, *range(CALLS - 2))
    handle, dead._intake._spool._lock_handle = dead._intake._spool._lock_handle, None
    os.close(handle or 0)
    recorder = make(batch_calls=2)
    recorder._intake.open()
    submit(recorder, project, CALLS - 2, CALLS - 1)
    return recorder


@pytest.mark.parametrize("fill", [fill_memory, fill_spool, die_with_some])
@pytest.mark.parametrize("has_report", [False, True])
def test_a_call_is_seen_at_each_moment_of_its_taking_or_said_to_be_out_of_sight(
    project: ProjectInfo,
    make_recorder: Make,
    fill: Callable[[Make, ProjectInfo], Recorder],
    has_report: bool,
) -> None:
    recorder = fill(make_recorder, project)
    intake = recorder._intake
    waiting, looks = set(expected(*range(CALLS))), 0

    def look() -> None:
        nonlocal looks
        looks += 1
        found = intake.unstored(lambda _: True)
        assert found is None or {each.id for each in found} == waiting

    while waiting:
        if has_report:
            intake.report(report_of(project))
        units = taken(intake, look)
        waiting -= {unit.captures[0].id or "" for unit in units}
        intake.finish([Outcome(unit) for unit in units])
        for unit in units:
            if unit.answers is not None:
                unit.answers.set_result(())
    assert looks > CALLS


def report_of(project: ProjectInfo) -> Unit:
    return reported(project, "key", [call(1000)], NOW, size=None)[1]


def test_a_report_that_is_under_way_is_waited_for(
    project: ProjectInfo, make_recorder: Make, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    """An erasure waits for what was taken in, lest it comes back a moment later."""
    recorder = make_recorder()
    recorder.start()
    with stuck():
        report = recorder.record(project=project, captures=[call(1)], caller="key", now=NOW)
        settled = [recorder.settle(0.05) for _ in range(10)]

    assert settled == [False] * 10
    assert report.result(10)
    assert recorder.settle()
    assert names() == expected(1)
