"""A writer process that is stopped is noticed and replaced, whatever it was doing."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from helmdash.operations.recorder import Recorder, wire
from helmdash.operations.recorder.files.units import reported
from helmdash.operations.recorder.link import WriterLink
from helmdash.operations.recorder.serving import WriterServer
from helmdash.operations.recorder.terms import Counts
from helmdash.operations.recorder.wire import Group
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Call
from tests.factories import NOW
from tests.recorder.support import call, counts, submit, writer_of
from tests.support.server import Served


def test_one_that_ends_while_nobody_asks_is_missed_and_the_next_one_is_found(
    linked: Recorder, project: ProjectInfo, link: WriterLink, writer_server: WriterServer
) -> None:
    submit(linked, project, 1)
    assert linked.settle()
    before = link._socket
    for each in [*writer_server._threads.values()]:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)

    # It is seen once a second; and whoever listens greets at once.
    _wait_for(lambda: linked.has_writer_process and link._socket is not before)
    submit(linked, project, 2)
    assert linked.settle()
    assert (counts(linked).stored, counts(linked).duplicate) == (2, 0)


def test_nobody_asks_for_one_before_it_is_wanted(
    project: ProjectInfo, make_recorder: Callable[..., Recorder], listening: Path
) -> None:
    other = make_recorder()
    link = WriterLink(str(listening), after_calls=0)
    other.start(link)
    time.sleep(1.2)  # a round of its thread

    assert link._socket is None


def test_one_that_could_take_no_connection_for_a_moment_takes_it_later(
    transactional_db: None, listening: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as asker:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        # No file can be opened in this process, nor a connection accepted.
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            asker.connect(str(listening))
            time.sleep(0.2)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        asker.settimeout(10)

        assert asker.recv(len(wire.HELLO)) == wire.HELLO


def test_a_stopped_server_process_is_not_taken_for_a_writer_that_hangs(
    project: ProjectInfo, link: WriterLink, writer_server: WriterServer
) -> None:
    calls = [call(number) for number in range(1000)]
    _, unit = reported(project, "key", calls, NOW, size=None)
    # It reads nothing of the answer, which is more than the connection holds.
    link.send(Group(process="me", started_at=NOW, spool_bytes=0, counts=Counts(), units=[unit]))

    _wait_for(lambda: Call.objects.count() == 1000)
    _wait_for(lambda: writer_server.silent_seconds() == 0)
    time.sleep(0.2)
    assert writer_server.silent_seconds() == 0
    assert len([each for some in link.hear([unit]) for each in some]) == 1
    link.close()


def test_one_that_is_asked_to_end_while_it_takes_a_connection_ends_in_order(
    listening: Path, writer_server: WriterServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, start = threading.Event(), threading.Thread.start

    def late(thread: threading.Thread) -> None:
        if thread.name == "writer":
            begins.set()
            time.sleep(0.3)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", late)
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(str(listening))
        assert begins.wait(10)

        writer_server.stop(5)  # raised RuntimeError: a thread that had not begun was waited for


@pytest.mark.slow
def test_one_that_is_stopped_before_it_answers_is_replaced(serve: Callable[..., Served]) -> None:
    served = serve(HELMDASH_WRITER="process")
    assert _reports(served)
    first = writer_of(served)
    # The thread that shows that it lives while the main thread reads its packages.
    _wait_for(lambda: len(os.listdir(f"/proc/{first}/task")) > 1)
    os.kill(first, signal.SIGSTOP)
    second = writer_of(served, other_than=first)

    _wait_for(lambda: _reports(served) and _who_stores(served) == "process")
    assert writer_of(served) == second
    assert "shows no sign of life and is ended by force" in served.log


def _reports(served: Served) -> bool:
    """Somebody reports a call, which is stored."""
    url = f"{served.base_url}/api/v1/calls"
    return httpx.post(url, json={"model": "m"}, headers=served.headers, timeout=30).is_success


def _who_stores(served: Served) -> str:
    return str(httpx.get(f"{served.base_url}/readyz", timeout=30).json()["recorder"]["writer"])


def _wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
