"""Reports that the event loop hands to the writer process itself, and how each may end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from django.db import OperationalError

from helmdash.core.calls.capture import Capture
from helmdash.operations.recorder import Recorder, RecorderFull, group_commit, wire
from helmdash.operations.recorder.intake import Intake
from helmdash.operations.recorder.link import WriterLink
from helmdash.operations.recorder.writer import Writer
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries import ledger
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import RecorderLedger
from tests.factories import NOW
from tests.recorder.support import call, counts, expected, names, submit

Before = dict[str, Callable[[], object]]
Report = Callable[[Capture], Coroutine[Any, Any, tuple[Recorded, ...]]]
# Reports that come one after the other before the loop takes them for one client's.
FIRST = 12


@pytest.fixture
def by_thread(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Fills with the ids of what the recorder's thread stores or hands over."""
    found: list[list[str]] = []
    attempt = Writer.attempt

    def note(writer: Writer, units: Any) -> None:
        found.append([str(each.id) for unit in units for each in unit.captures])
        attempt(writer, units)

    monkeypatch.setattr(Writer, "attempt", note)
    return found


@pytest.fixture
def storing(monkeypatch: pytest.MonkeyPatch) -> Before:
    """What is to happen in the writer before it stores the call of an id."""
    found: Before = {}

    def record(**given: Any) -> object:
        for each in given["captures"]:
            found.get(str(each.id), lambda: None)()
        return record_calls(**given)

    monkeypatch.setattr(group_commit, "record_calls", record)
    return found


def run(linked: Recorder, project: ProjectInfo, then: Callable[[Report], Any]) -> Any:
    """What `then` comes to on an event loop whose one client has sent calls 0 to FIRST."""

    async def report(capture: Capture) -> tuple[Recorded, ...]:
        answers = linked.record(
            project=project, captures=[capture], caller="key", now=NOW, on_loop=True
        )
        return await linked.answered(answers)

    async def whole() -> Any:
        for number in range(FIRST):
            await report(call(number))
            await rested(linked)
        return await then(report)

    # The server's own: it has other ideas of a socket than asyncio's.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(whole())


async def rested(linked: Recorder) -> None:
    """Wait until the recorder's thread has nothing to do: it notes what it has handed over, and
    looks around once a second, either of which may take long."""
    while not linked._intake._is_resting:
        await asyncio.sleep(0.001)


def test_a_lone_clients_reports_need_no_thread(
    linked: Recorder, project: ProjectInfo, by_thread: list[list[str]]
) -> None:
    async def more(report: Report) -> list[Recorded]:
        by_thread.clear()
        told: list[Recorded] = []
        for number in (*range(FIRST, FIRST + 8), FIRST):
            await rested(linked)
            told += await report(call(number))
        return told

    told = run(linked, project, more)

    assert by_thread == []
    assert names() == expected(*range(FIRST + 8))
    assert [each.duplicate for each in told] == [False] * 8 + [True]
    (stored,) = record_calls(project=project, captures=[call(FIRST)], caller="key", now=NOW)
    assert replace(told[0], duplicate=True) == stored
    found = counts(linked)
    assert (found.accepted, found.stored, found.duplicate) == (FIRST + 9, FIRST + 8, 1)
    assert RecorderLedger.objects.get(name=linked.name).stored == FIRST + 8


def test_what_comes_while_one_is_under_way_is_a_group_of_the_threads(
    linked: Recorder,
    project: ProjectInfo,
    by_thread: list[list[str]],
    storing: Before,
) -> None:
    goes_on = threading.Event()
    storing["call-00050"] = lambda: goes_on.wait(5)
    storing["call-00052"] = lambda: time.sleep(0.1)

    async def more(report: Report) -> None:
        by_thread.clear()
        first = asyncio.ensure_future(report(call(50)))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(report(call(number))) for number in (51, 52, 53)]
        submit(linked, project, 54)
        await asyncio.sleep(0.05)
        assert by_thread == []
        goes_on.set()
        await asyncio.gather(first, *others)

    run(linked, project, more)

    assert linked.settle()
    assert sorted(each for group in by_thread for each in group) == expected(51, 52, 53, 54)
    assert by_thread[0][:3] == expected(51, 52, 53)
    assert linked.has_writer_process
    assert names() == expected(*range(FIRST), 50, 51, 52, 53, 54)


def test_one_whose_answer_is_lost_is_stored_once_and_counted_once(
    linked: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> bytes:
        raise TypeError("killed")

    async def more(report: Report) -> tuple[Recorded, ...]:
        monkeypatch.setattr(wire, "dump_outcomes", die)
        return await report(call(50))

    (told,) = run(linked, project, more)

    assert told.id == "call-00050"
    assert names() == expected(*range(FIRST), 50)
    found = counts(linked)
    assert (found.accepted, found.stored, found.duplicate) == (FIRST + 1, FIRST + 1, 0)
    assert not linked.has_writer_process
    linked.stop()
    assert ledger.totals().stored == FIRST + 1


def test_where_the_writer_process_is_gone_the_thread_stores(
    linked: Recorder, project: ProjectInfo, link: WriterLink
) -> None:
    async def more(report: Report) -> list[tuple[Recorded, ...]]:
        assert link._socket is not None
        link._socket.shutdown(2)
        return [await report(call(50)), await report(call(51))]

    told = run(linked, project, more)

    assert [each.duplicate for (each,) in told] == [False, False]
    assert names() == expected(*range(FIRST), 50, 51)
    assert (counts(linked).stored, counts(linked).duplicate) == (FIRST + 2, 0)


def test_a_database_that_is_away_for_a_moment_costs_a_moment(
    linked: Recorder, project: ProjectInfo, storing: Before
) -> None:
    failing = [OperationalError("gone")] * 2

    def fail() -> None:
        if failing:
            raise failing.pop()

    storing["call-00050"] = fail

    (told,) = run(linked, project, lambda report: report(call(50)))

    assert told.duplicate is False
    assert linked.has_writer_process
    assert (counts(linked).stored, counts(linked).duplicate) == (FIRST + 1, 0)


def test_a_report_that_cannot_be_stored_says_so_and_the_next_is(
    linked: Recorder, project: ProjectInfo, storing: Before
) -> None:
    def fail() -> None:
        raise KeyError("a fault of ours")

    storing["call-00050"] = fail

    async def more(report: Report) -> None:
        with pytest.raises(Exception, match="KeyError"):
            await report(call(50))
        await report(call(51))

    run(linked, project, more)

    assert names() == expected(*range(FIRST), 51)
    assert (counts(linked).stored, counts(linked).rejected) == (FIRST + 1, 1)


def test_one_that_is_under_way_when_the_server_stops_is_stored(
    linked: Recorder, project: ProjectInfo, storing: Before
) -> None:
    storing["call-00050"] = lambda: time.sleep(0.2)

    async def more(report: Report) -> tuple[Recorded, ...]:
        told = asyncio.ensure_future(report(call(50)))
        await asyncio.sleep(0.05)
        linked.stop()
        return await told

    (told,) = run(linked, project, more)

    assert told.id == "call-00050"
    assert names() == expected(*range(FIRST), 50)
    row = RecorderLedger.objects.get(name=linked.name)
    assert (row.stored, row.waiting) == (FIRST + 1, 0)
    assert row.stopped_at is not None


def test_a_writer_process_that_is_silent_turns_reports_away(
    linked: Recorder, project: ProjectInfo, storing: Before
) -> None:
    goes_on = threading.Event()
    storing["call-00050"] = lambda: goes_on.wait(10)

    async def more(report: Report) -> None:
        began = time.monotonic()
        under_way = asyncio.ensure_future(report(call(50)))
        await asyncio.sleep(2.2)
        with pytest.raises(RecorderFull):
            await report(call(51))
        with pytest.raises(RecorderFull):
            await under_way
        assert time.monotonic() - began < 5
        goes_on.set()
        # The loop that handed it over hears of its end.
        assert await asyncio.to_thread(linked.settle)

    run(linked, project, more)

    assert names() == expected(*range(FIRST), 50)


@contextlib.contextmanager
def stopped(link: WriterLink, *, room: int | None = None) -> Iterator[Callable[[], None]]:
    """The writer process reads nothing more, as one that is stopped; gives what ends it by force.
    room: bytes that the connection holds; None: what is usual."""
    ours, theirs = socket.socketpair()
    if room is not None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
    link.close()
    link._socket, link._stream, link.is_up = ours, ours.makefile("rb"), True
    with theirs:
        yield theirs.close


async def longest_pause(since: float, until: asyncio.Future[Any]) -> float:
    """For how many seconds at most the event loop served nobody else until this was done."""
    found, last = time.monotonic() - since, time.monotonic()
    while not until.done():
        await asyncio.sleep(0.01)
        found, last = max(found, time.monotonic() - last), time.monotonic()
    return found


@pytest.mark.parametrize(
    ("captures", "room"),
    [
        pytest.param([call(number) for number in range(50, 1050)], None, id="many calls"),
        pytest.param([call(50, content="x" * 12_000)], 4096, id="less room than usual"),
    ],
)
def test_a_stopped_writer_process_does_not_stop_the_event_loop(
    linked: Recorder,
    project: ProjectInfo,
    link: WriterLink,
    captures: list[Capture],
    room: int | None,
) -> None:
    async def more(_: Report) -> tuple[float, tuple[Recorded, ...]]:
        with stopped(link, room=room) as end:
            # Its keeper would, after ten seconds.
            keeper = threading.Timer(1.0, end)
            keeper.start()
            began = time.monotonic()
            answers = linked.record(
                project=project, captures=captures, caller="key", now=NOW, on_loop=True
            )
            told = asyncio.ensure_future(linked.answered(answers))
            pause = await longest_pause(began, told)
            keeper.join()
        return pause, told.result()

    pause, told = run(linked, project, more)

    assert [each.duplicate for each in told] == [False] * len(captures)
    assert counts(linked).stored == FIRST + len(captures)
    assert pause < 0.7


def test_a_link_that_is_lost_just_before_it_is_reserved_is_given_back(
    linked: Recorder, project: ProjectInfo, link: WriterLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = Intake.reserve

    def lose(intake: Intake) -> bool:
        link.close()  # as the thread does, between the loop's look and its reservation
        return reserve(intake)

    async def more(report: Report) -> tuple[Recorded, ...]:
        monkeypatch.setattr(Intake, "reserve", lose)
        return await report(call(50))

    run(linked, project, more)

    assert names() == expected(*range(FIRST), 50)


def test_a_server_that_stops_does_not_wait_for_a_stopped_writer_process(
    linked: Recorder, project: ProjectInfo, link: WriterLink
) -> None:
    async def more(report: Report) -> float:
        with stopped(link) as end:
            keeper = threading.Timer(4.0, end)
            keeper.start()
            told = asyncio.ensure_future(report(call(50)))
            await asyncio.sleep(0.05)
            began = time.monotonic()
            linked.stop(0.5)
            took = time.monotonic() - began
            keeper.cancel()
        await told  # its end has come, and the recorder's thread with it
        return took

    assert run(linked, project, more) < 2.5
