"""The host's writer process: stores what the recorders of its server processes hand over.

Each has a connection, and a thread that places, judges and stores its groups, as the recorder's own
thread does: in a transaction for each project, with the ledger's row of the process that asks.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from django.db import connection

from helmdash.operations.database.sqlite_file import FileWatch
from helmdash.operations.recorder import group_commit, wire
from helmdash.operations.recorder.counting import count, counted
from helmdash.operations.recorder.files.units import Outcome
from helmdash.operations.recorder.own_connection import use_own_connection
from helmdash.operations.recorder.wire import Group
from helmdash.operations.recording import truncation
from helmdash.queries.ledger import ProcessLedger
from helmdash.records.statements.bulk import store_alone

logger = logging.getLogger(__name__)

# Who could not be accepted waits, and is stored for by a thread of its own meanwhile.
_AGAIN_SECONDS = 1.0


class WriterServer:
    """Takes connections on a socket that listens, until it is stopped."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        clock: Callable[[], datetime],
        is_alone: bool = False,
    ) -> None:
        """is_alone: this process does nothing else (records.statements.bulk)."""
        if is_alone:
            store_alone()
        self._listener = listener
        self._clock = clock
        self._threads: dict[threading.Thread, socket.socket] = {}
        # Who is at work on a group, and when it was last heard of.
        self._heard: dict[threading.Thread, float] = {}
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()

    def silent_seconds(self) -> float:
        """For how long the group that waits longest has had no answer; 0 where none is at work."""
        with self._lock:
            heard = [*self._heard.values()]
        return max(time.monotonic() - min(heard), 0.0) if heard else 0.0

    def serve(self) -> None:
        """Accept until `stop`."""
        while not self._is_stopping.is_set():
            try:
                accepted, _ = self._listener.accept()
                self._begin(accepted)
            except (OSError, RuntimeError) as error:
                # Too many files or threads, of this process or the host. Without this thread nobody
                # would ever be greeted, and nothing would show it.
                if not self._is_stopping.is_set():
                    logger.error("the writer process cannot take a connection: %s", error)
                    self._is_stopping.wait(_AGAIN_SECONDS)

    def _begin(self, accepted: socket.socket) -> None:
        """Serve a connection. Raises RuntimeError where there can be no thread more."""
        thread = threading.Thread(
            target=self._serve_one, args=(accepted,), name="writer", daemon=True
        )
        try:
            # Who stops meanwhile waits for those that have begun alone.
            with self._lock:
                thread.start()
                self._threads[thread] = accepted
        except RuntimeError:
            accepted.close()
            raise

    def stop(self, seconds: float) -> None:
        """Take no more groups, and wait so long for the end of those that are under way."""
        self._is_stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            left = dict(self._threads)
        for accepted in left.values():
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RD)
        for thread in left:
            thread.join(seconds)

    def _serve_one(self, accepted: socket.socket) -> None:
        try:
            with accepted, accepted.makefile("rb") as stream:
                use_own_connection()
                accepted.sendall(wire.HELLO)
                asker = _Asker(accepted, clock=self._clock)
                while True:
                    _, data = wire.read_frame(stream)
                    self._hear()
                    asker.answer(wire.read_group(data), saying=self._saying)
                    self._rest()
        except OSError:
            pass  # the server process has ended, or this one is to
        except Exception:
            logger.exception("the writer process failed on what it was told")
        finally:
            self._rest()
            with self._lock:
                self._threads.pop(threading.current_thread(), None)
            with contextlib.suppress(Exception):
                connection.close()

    def _hear(self) -> None:
        with self._lock:
            self._heard[threading.current_thread()] = time.monotonic()

    @contextlib.contextmanager
    def _saying(self) -> Iterator[None]:
        """Some of a group is done, and who asked is told: waiting for a server process that is
        stopped, and reads nothing, is no silence of this one."""
        self._rest()
        yield
        self._hear()

    def _rest(self) -> None:
        with self._lock:
            self._heard.pop(threading.current_thread(), None)


class _Asker:
    """One server process, on a thread of its own."""

    def __init__(self, to: socket.socket, *, clock: Callable[[], datetime]) -> None:
        self._to = to
        self._clock = clock
        self._watch = FileWatch()
        self._bands_told = 0

    def answer(self, group: Group, *, saying: Callable[[], AbstractContextManager[None]]) -> None:
        """Store a group and say what became of it, each part in a block of `saying`. Raises OSError
        when nobody is there to hear."""
        told = _Telling(group, self._tell, saying)
        try:
            self._store(group, told)
        except OSError:
            raise
        except Exception as error:
            if not group_commit.is_unavailable(error):
                logger.exception("the writer process failed and is asked again")
            with contextlib.suppress(Exception):
                connection.close()
            wire.send_frame(self._to, wire.UNAVAILABLE, group_commit.reason(error).encode())

    def _store(self, group: Group, told: _Telling) -> None:
        self._watch.check()
        gone = [
            Outcome(unit, fault=group_commit.NoSuchProject())
            for unit in group_commit.resolve(group.units)
        ]
        told.take(gone)
        for units in group_commit.groups(group.units):
            for outcomes in group_commit.store(units, now=self._clock(), book=self._book(group)):
                told.take(outcomes)

    def _book(self, group: Group) -> Callable[[Sequence[Outcome]], None]:
        def book(outcomes: Sequence[Outcome]) -> None:
            counts = counted(group.counts, outcomes, spool_bytes=group.spool_bytes)
            group_commit.book(
                ProcessLedger(
                    name=group.process,
                    started_at=group.started_at,
                    seen_at=self._clock(),
                    stopped_at=None,
                    counts=counts,
                )
            )

        return book

    def _tell(self, kind: bytes, outcomes: Sequence[Outcome], places: dict[int, int]) -> None:
        bands: Sequence[truncation.LearnedBand] = ()
        if kind == wire.LAST:
            self._bands_told, bands = truncation.bands_since(self._bands_told)
        try:
            data = wire.dump_outcomes(outcomes, places, bands)
        except TypeError as error:
            # They are stored: who asks is to look what became of them, and not to ask again.
            logger.exception("the writer process cannot say what it has stored")
            raise ConnectionAbortedError from error
        wire.send_frame(self._to, kind, data)


class _Telling:
    """What is said of one group, and its counts as they go on."""

    def __init__(
        self,
        group: Group,
        tell: Callable[[bytes, Sequence[Outcome], dict[int, int]], None],
        saying: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._group = group
        self._tell = tell
        self._saying = saying
        self._places = {id(unit): place for place, unit in enumerate(group.units)}
        self._left = len(group.units)

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Some more are final."""
        if not outcomes:
            return
        count(self._group.counts, outcomes)
        self._left -= len(outcomes)
        _log_faults(outcomes)
        with self._saying():
            self._tell(wire.LAST if self._left == 0 else wire.STORED, outcomes, self._places)


def _log_faults(outcomes: Sequence[Outcome]) -> None:
    """Of reports: who reported hears that something went wrong, and the log has what it was."""
    for outcome in outcomes:
        if outcome.fault is not None and outcome.unit.answers is not None:
            logger.error("a report could not be stored", exc_info=outcome.fault)
