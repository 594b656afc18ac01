"""The host's writer process: it stores what recorders hand over, and its end loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from django.db import OperationalError

from helmdash.cli.writer.__main__ import beat_until_asked_to_end
from helmdash.core.truncation.calibration import Band
from helmdash.core.truncation.sizes import Sizes
from helmdash.operations.recorder import Recorder, RecorderState, group_commit, wire
from helmdash.operations.recorder.files.units import Outcome, Unit, stored
from helmdash.operations.recorder.link import WriterLink
from helmdash.operations.recorder.serving import WriterServer
from helmdash.operations.recorder.terms import Counts
from helmdash.operations.recorder.wire import Group
from helmdash.operations.recording import truncation
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.recording.truncation import LearnedBand
from helmdash.queries import ledger
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call, CallPayload, Project, RecorderLedger
from tests.factories import NOW
from tests.recorder.support import call, counts, expected, names, submit, writer_of
from tests.support.server import Served, serve

Make = Callable[..., Recorder]


def storing_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the sizes of groups that a recorder's own thread stores."""
    found: list[int] = []
    mine = "writer"

    def record(**given: object) -> object:
        if threading.current_thread().name != mine:
            found.append(len(given["captures"]))  # type: ignore[arg-type]
        return record_calls(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "record_calls", record)
    return found


def test_it_stores_calls_and_answers_reports_as_the_thread_does(
    linked: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = storing_here(monkeypatch)
    submit(linked, project, *range(20))
    reports = [replace(call(number), id=f"report-{number}") for number in range(3)]
    answers = linked.record(project=project, captures=reports, caller="key", now=NOW).result(5)

    assert linked.settle()
    assert here == []
    assert sorted(names()) == [*expected(*range(20)), "report-0", "report-1", "report-2"]
    again = record_calls(project=project, captures=reports, caller="key", now=NOW)
    assert [replace(answer, duplicate=True) for answer in answers] == list(again)
    found = counts(linked)
    assert (found.accepted, found.stored, found.duplicate) == (23, 23, 0)
    row = RecorderLedger.objects.get(name=linked.name)
    assert row.stored == 23


@pytest.mark.parametrize("keeps", ["full", "redacted", "off"])
def test_what_a_project_keeps_is_the_same(
    linked: Recorder, project: ProjectInfo, keeps: str
) -> None:
    kept = replace(project, payload=keeps)
    Project.objects.filter(pk=project.id).update(payload=keeps)
    secret = "my key is sk-abcdefghijklmnopqrstuvwx1234"
    submit(linked, kept, 1, content=secret)
    assert linked.settle()
    record_calls(project=kept, captures=[call(2, content=secret)], caller="owner", now=NOW)

    columns = ("raw_content_bytes", "total_tokens", "prompt_tokens")
    by_process, by_thread = Call.objects.order_by("name").values_list(*columns)
    assert by_process == by_thread
    texts = CallPayload.objects.order_by("call_id").values_list("content", flat=True)
    assert len(set(texts)) <= 1
    assert len(texts) in (0, 2)
    spool = b"".join(path.read_bytes() for path in linked._spool_dir.glob("*.ndjson"))
    assert keeps == "full" or b"sk-abcdefg" not in spool


def test_a_call_it_cannot_store_is_put_aside_and_the_others_are_stored(
    linked: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(**given: object) -> object:
        if any(each.id == "call-00003" for each in given["captures"]):  # type: ignore[attr-defined]
            raise KeyError("a fault of ours")
        return record_calls(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "record_calls", record)
    submit(linked, project, *range(6))

    assert linked.settle()
    assert names() == expected(0, 1, 2, 4, 5)
    found = counts(linked)
    assert (found.stored, found.rejected) == (5, 1)


def test_a_group_whose_answer_is_lost_is_stored_once_and_counted_once(
    linked: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed between its commit and its answer: the hardest moment."""
    submit(linked, project, 1)
    assert linked.settle()

    def die(*_: object) -> bytes:
        raise TypeError("killed")

    monkeypatch.setattr(wire, "dump_outcomes", die)
    submit(linked, project, 1, 2, 3)

    assert linked.settle()
    assert names() == expected(1, 2, 3)
    found = counts(linked)
    # The first one was known before: it is a repeat, and the others are none.
    assert (found.accepted, found.stored, found.duplicate) == (4, 3, 1)
    assert not linked.has_writer_process
    linked.stop()
    assert ledger.totals().stored == 3


def test_one_that_is_gone_before_it_was_handed_anything_costs_nothing(
    linked: Recorder,
    project: ProjectInfo,
    writer_server: WriterServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = storing_here(monkeypatch)
    submit(linked, project, 1)
    assert linked.settle()
    # For good: one that listens on is found again where the look at the books takes long.
    writer_server.stop(5.0)
    report = linked.record(project=project, captures=[call(2)], caller="key", now=NOW)

    assert report.result(5)[0].duplicate is False
    assert linked.settle()
    assert here == [1]
    found = counts(linked)
    assert (found.stored, found.duplicate) == (2, 0)


def test_without_one_the_thread_stores(
    project: ProjectInfo, make_recorder: Make, tmp_path: Path
) -> None:
    recorder = make_recorder()
    recorder.start(WriterLink(str(tmp_path / "nobody"), after_calls=0))
    submit(recorder, project, 1, 2)

    assert recorder.settle()
    assert names() == expected(1, 2)
    assert not recorder.has_writer_process


def test_it_is_asked_for_only_once_it_is_worth_it(
    project: ProjectInfo, make_recorder: Make, listening: Path
) -> None:
    recorder = make_recorder()
    recorder.start(WriterLink(str(listening), after_calls=3))
    submit(recorder, project, 1, 2)
    assert recorder.settle()
    states = [recorder.has_writer_process]
    for number in range(3, 60):
        submit(recorder, project, number)
        assert recorder.settle()
        states.append(recorder.has_writer_process)
        if states[-1]:
            break
        time.sleep(0.02)

    assert (states[0], states[-1]) == (False, True)


def test_an_unavailable_database_is_told_as_such(
    linked: Recorder, project: ProjectInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [True]

    def record(**given: object) -> object:
        if failing:
            raise OperationalError("gone")
        return record_calls(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "record_calls", record)
    submit(linked, project, 1)
    end = time.monotonic() + 5
    while linked.is_writing and time.monotonic() < end:
        time.sleep(0.005)
    assert linked.state() is RecorderState.SPOOLING
    failing.clear()

    assert linked.settle()
    assert linked.has_writer_process
    assert (counts(linked).stored, counts(linked).duplicate) == (1, 0)


def test_a_thread_that_has_no_answer_from_the_database_is_told_by_its_silence(
    linked: Recorder,
    project: ProjectInfo,
    writer_server: WriterServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on = threading.Event()

    def record(**given: object) -> object:
        goes_on.wait(5)
        return record_calls(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "record_calls", record)
    assert writer_server.silent_seconds() == 0
    submit(linked, project, 1)
    end = time.monotonic() + 5
    while writer_server.silent_seconds() < 0.1 and time.monotonic() < end:
        time.sleep(0.005)
    assert writer_server.silent_seconds() >= 0.1
    goes_on.set()

    assert linked.settle()
    while writer_server.silent_seconds() and time.monotonic() < end:
        time.sleep(0.005)
    assert writer_server.silent_seconds() == 0


def test_a_process_with_a_thread_that_is_stuck_shows_no_sign_of_life() -> None:
    """Whoever keeps it ends what shows none."""
    asked, ask = os.pipe()
    hear, told = os.pipe()
    os.set_blocking(hear, False)
    answers = iter([True, True, False, False, False])

    def is_well() -> bool:
        found = next(answers, None)
        if found is None:
            os.close(ask)
        return bool(found)

    beat_until_asked_to_end(asked, told, is_well=is_well, seconds=0.001)

    assert os.read(hear, 100) == b".."
    for each in (asked, hear, told):
        os.close(each)


def test_who_is_of_another_release_is_not_asked(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "writer"))
        listener.listen(1)
        link = WriterLink(str(tmp_path / "writer"), after_calls=0)
        assert not link.is_ready()
        other, _ = listener.accept()
        with other:
            other.sendall(b"helmdash writer 0.0.1\n")
            assert not link.is_ready()
            assert not link.is_up


def test_a_group_is_the_same_after_the_way(project: ProjectInfo) -> None:
    units = [
        Unit(project_id=project.id, project=project, captures=(call(1), call(2)), size=0),
        Unit(project_id=7, project=None, captures=(call(3),), size=0, is_adopted=True),
        Unit(project_id=7, project=None, captures=(call(4),), size=0, is_in_doubt=True),
    ]
    group = Group(
        process="me", started_at=NOW, spool_bytes=5, counts=Counts(accepted=3), units=units
    )
    found = wire.read_group(b"".join(wire.group_parts(group)))

    assert (found.process, found.started_at, found.counts) == ("me", NOW, group.counts)
    for one, other in zip(found.units, units, strict=True):
        assert one.captures == other.captures
        assert (one.project, one.project_id) == (other.project, other.project_id)
        assert (one.is_adopted, one.is_in_doubt) == (other.is_adopted, other.is_in_doubt)


def test_outcomes_are_the_same_after_the_way(project: ProjectInfo) -> None:
    captures = [call(1), call(2, finish_reason="length", content="")]
    answers = record_calls(project=project, captures=captures, caller="", now=NOW)
    report = Unit(project_id=1, project=project, captures=tuple(captures), size=0)
    report.answers = Future()
    refused = Unit(project_id=1, project=project, captures=(call(3),), size=0)
    told = [stored(report, answers), Outcome(refused, fault=KeyError("x"))]
    band = LearnedBand(1, "m", "", Band(middle=1.5, calls=3, pins=(4, 5)))
    data = wire.dump_outcomes(told, {id(report): 0, id(refused): 1}, [band])
    found, bands = wire.read_outcomes(data, [report, refused])

    assert found[0].answers == answers
    assert group_commit.reason(found[1].fault or ValueError()) == "KeyError"
    assert bands == (band,)


def test_what_a_models_calls_have_shown_comes_to_the_gateways_process() -> None:
    truncation.forget()
    sizes = Sizes(bytes=400_000, messages=3, tokens=2_000)
    assert truncation.looks_cut(1, "m", None, sizes)
    truncation.take_over([LearnedBand(1, "m", "", Band(middle=5.3, spread=0.05, calls=50))])

    assert not truncation.looks_cut(1, "m", None, sizes)
    changes, bands = truncation.bands_since(0)
    assert [band.model_key for band in bands] == ["m"]
    assert truncation.bands_since(changes) == (changes, ())


# -- a real one ------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server with a writer process from its first call on."""
    found = serve(tmp_path, HELMDASH_WRITER="process")
    yield found
    found.close()


@pytest.mark.slow
def test_killed_stopped_for_good_and_killed_with_its_server_it_loses_nothing(
    served: Served,
) -> None:
    acknowledged: list[str] = []
    is_over = threading.Event()

    def report(who: int) -> None:
        number = 0
        with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as client:
            while not is_over.is_set():
                name = f"w{who}-{number}"
                body = {"id": name, "model": "m", "conversation": f"talk-{who}"}
                try:
                    answer = client.post("/api/v1/calls", json=body)
                except httpx.TransportError:
                    return
                if answer.is_success:
                    acknowledged.append(name)
                # Some calls are always under way; as many as go would take both cores from others.
                time.sleep(0.02 if answer.is_success else 0.1)
                number += 1

    def writer() -> int:
        return writer_of(served)

    with ThreadPoolExecutor(4) as threads, contextlib.ExitStack() as at_the_end:
        at_the_end.callback(is_over.set)
        work = [threads.submit(report, who) for who in range(4)]
        first = writer()
        _wait_for_more(acknowledged, 20)
        assert _who_stores(served) == "process"
        assert f"-{first}-" in _who_folds(served)
        os.kill(first, signal.SIGKILL)
        _wait_for_more(acknowledged, 20)
        second = writer()
        assert second != first
        assert _who_stores(served) == "process"
        os.kill(second, signal.SIGSTOP)
        # Nobody lets it go on: it is ended, and another one started.
        end = time.monotonic() + 30
        while writer() == second and time.monotonic() < end:
            time.sleep(0.1)
        _wait_for_more(acknowledged, 20)
        assert writer() != second
        served.kill()
        is_over.set()
        for each in work:
            each.result()
    served.start()
    with httpx.Client(base_url=served.base_url, headers=served.headers, timeout=30) as client:
        found = client.post("/api/v1/calls/reconcile", json={"ids": acknowledged[-500:]}).json()

    assert found["missing"] == []


def _who_stores(served: Served) -> str:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        ready = httpx.get(f"{served.base_url}/readyz", timeout=30).json()
        if ready["recorder"]["writer"] == "process":
            return "process"
        time.sleep(0.05)
    return "thread"


def _who_folds(served: Served) -> str:
    """Who adds calls to the rollups once they have waited for long."""
    return served.manage("shell", "-v0", "-c", _FOLDED).stdout


_FOLDED = """
import time
from datetime import UTC, datetime
from helmdash.records.models import Job, UncountedCalls
end = time.monotonic() + 30
while time.monotonic() < end:
    UncountedCalls.objects.update(at=datetime(2020, 1, 1, tzinfo=UTC))
    row = Job.objects.filter(name="rollups", told__startswith="added").first()
    if row:
        print(row.holder)
        break
    time.sleep(0.1)
"""


def _wait_for_more(acknowledged: list[str], more: int) -> None:
    wanted, end = len(acknowledged) + more, time.monotonic() + 30
    while len(acknowledged) < wanted:
        assert time.monotonic() < end
        time.sleep(0.02)
