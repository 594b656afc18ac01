"""Workers that are forks of one process, which has collected the tests.

With xdist each worker starts anew and collects all tests, 8 s of CPU and half a gigabyte for each,
and everything between it and its controller goes through threads. Here `-n N` forks N workers once
the tests are collected. What is kept of xdist: which tests follow each other (`xdist_group`), that
a worker which dies fails the test it ran and is replaced, and the names of workers.

Where a fork is not safe, and with another `--dist`, xdist does what it does.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from tests.support.forking import WORKS_HERE
from tests.support.sharing_out import batches
from tests.support.telling import Reader, Told, report, send
from tests.support.worker import work

# Until a worker that is asked to end is made to.
_END_SECONDS = 10
_INTERRUPTED = int(pytest.ExitCode.INTERRUPTED)
# As xdist does: so many are replaced, for each that was asked for.
_REPLACED = 4


def take_over(config: pytest.Config) -> None:
    """Let forks run the tests, if workers are asked for and xdist is to share out by groups."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    option = config.option
    by_groups = option.dist in ("no", "loadgroup") and not (option.tx or option.usepdb)
    if not (option.numprocesses and by_groups and WORKS_HERE):
        return
    count = option.numprocesses
    if not isinstance(count, int):
        count = config.hook.pytest_xdist_auto_num_workers(config=config)
    option.numprocesses, option.dist = 0, "no"
    config.pluginmanager.register(ForkedWorkers(count))


@dataclass(slots=True, eq=False)
class _Worker:
    name: str
    pid: int
    connection: socket.socket
    reader: Reader = field(init=False)
    given: deque[int] = field(default_factory=deque)
    """Places of tests that it has, and has not told of."""

    def __post_init__(self) -> None:
        self.reader = Reader(self.connection)


class ForkedWorkers:
    """A plugin of pytest's that runs the tests in forks."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._may_be_replaced = _REPLACED * count
        self._waiting: deque[list[int]] = deque()
        self._workers: dict[int, _Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._started = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Have all tests run, and tell of them as they end."""
        if session.testsfailed or session.config.option.collectonly:
            # pytest's own loop says what is wrong.
            return None
        self._waiting.extend(batches(session.items))
        _prepare(session.config)
        try:
            for _ in range(min(self._count, len(self._waiting))):
                self._start(session)
            while self._workers:
                for worker in self._those_that_tell():
                    self._hear(worker, session)
                _end_if_asked(session)
        finally:
            self._end()
        return True

    def _start(self, session: pytest.Session) -> None:
        assert threading.active_count() == 1, "a thread does not live on in a fork"
        name = f"gw{self._started}"
        self._started += 1
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._forget_the_others(ours)
            _run(session, theirs, name)
        theirs.close()
        self._workers[pid] = worker = _Worker(name, pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _forget_the_others(self, ours: socket.socket) -> None:
        """In a fork: another's connection ends only when nobody holds it."""
        for connection in (ours, *(worker.connection for worker in self._workers.values())):
            connection.close()
        self._selector.close()
        self._workers.clear()

    def _those_that_tell(self) -> Iterator[_Worker]:
        for key, _ in self._selector.select():
            yield key.data

    def _hear(self, worker: _Worker, session: pytest.Session) -> None:
        try:
            for told in worker.reader.wait():
                self._take(told, worker, session)
        except EOFError:
            self._is_gone(worker, session)

    def _take(self, told: Told, worker: _Worker, session: pytest.Session) -> None:
        if told.place is not None:
            assert worker.given.popleft() == told.place
            report(told, session)
            return
        batch = self._waiting.popleft() if self._waiting else []
        worker.given.extend(batch)
        with contextlib.suppress(OSError):
            send(worker.connection, batch)

    def _is_gone(self, worker: _Worker, session: pytest.Session) -> None:
        self._selector.unregister(worker.connection)
        worker.connection.close()
        del self._workers[worker.pid]
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.given and code == 0:
            return
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        self._fail(worker, code, session)
        if not self._may_be_replaced:
            raise session.Interrupted("too many workers have died")
        self._may_be_replaced -= 1
        if self._waiting:
            self._start(session)

    def _fail(self, worker: _Worker, code: int, session: pytest.Session) -> None:
        """Fail the test that a worker ran as it died; the rest of its batch is somebody else's."""
        why = f"worker {worker.name} has ended with {code}"
        if not worker.given:
            raise session.Failed(f"{why} after its last test")
        item = session.items[worker.given.popleft()]
        died = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        session.config.hook.pytest_runtest_logreport(report=died)
        session.config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if worker.given:
            self._waiting.appendleft([*worker.given])

    def _end(self) -> None:
        """Those that still run, on an interrupt or a failure that ends the run."""
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_SECONDS
        for worker in self._workers.values():
            while time.monotonic() < deadline and os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        self._workers.clear()


def _prepare(config: pytest.Config) -> None:
    # Made once, and below it a directory of each worker's own.
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        # The file of each test, which is another one each time.
        reporter.showfspath = False


def _end_if_asked(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _run(session: pytest.Session, connection: socket.socket, name: str) -> NoReturn:
    """In a fork: work, and end without what is left to do for the process it is a fork of."""
    code = 1
    try:
        work(session, connection, name)
        code = 0
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BaseException:
        import traceback

        capture = session.config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        traceback.print_exc()
    finally:
        os._exit(code)
