"""The doors of the recorder: for the gateway, for the API, for the server that starts it.

Where nobody started it (tests, commands) there is no thread and no spool: `record` stores in the
caller's thread, on the caller's connection and inside the caller's transaction; what was submitted
waits in memory until `settle` or `start`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from threading import Event

from django.utils import timezone

from helmdash import conf
from helmdash.core.calls.capture import Capture
from helmdash.operations.database.sqlite_file import open_only_existing
from helmdash.operations.database.timeouts import (
    DatabaseNotResponding,
    limit_lock_waits,
    with_timeout,
)
from helmdash.operations.recorder.capture_json import bare_capture
from helmdash.operations.recorder.files.damaged_lines import DamagedLines
from helmdash.operations.recorder.files.orphaned_segments import SEGMENTS
from helmdash.operations.recorder.files.spool import disk_problem
from helmdash.operations.recorder.files.stuck_files import StuckFiles, stuck_files
from helmdash.operations.recorder.files.units import Answers, Unit, reported, stored
from helmdash.operations.recorder.intake import Intake
from helmdash.operations.recorder.link import WriterLink
from helmdash.operations.recorder.rejected_calls import RejectedCalls
from helmdash.operations.recorder.terms import Limits, RecorderFull, RecorderState
from helmdash.operations.recorder.waiting import is_done
from helmdash.operations.recorder.writer import Writer
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.ledger import ProcessLedger

logger = logging.getLogger(__name__)

# Who waits for a call is told when it is stored; it looks by itself, too, for the database may be
# away, and for a writer that was about to linger.
_LOOK_SECONDS = 0.01

# Whoever records fewer needs no second process, and its memory.
_WORTH_A_PROCESS = 100

_FULL = "The recorder has too much to store just now."
_SLOW = "The database takes too long to answer."


class Recorder:
    """Takes calls in and stores them. One for each process: `recorder()`."""

    def __init__(
        self,
        *,
        spool_dir: Path,
        spool_max_bytes: int,
        clock: Callable[[], datetime],
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._started_at = clock()
        self._spool_dir = spool_dir
        self.name = _process_name(self._started_at)
        self._intake = Intake(
            directory=spool_dir, name=self.name, max_bytes=spool_max_bytes, limits=self._limits
        )
        self._spool_dir = spool_dir
        self._rejected = RejectedCalls(spool_dir / "rejected.ndjson")
        self._link: WriterLink | None = None
        self._writer = self._new_writer()
        self._is_started = False
        self._is_stopped = False

    # -- for the gateway, on the event loop -----------------------------------------------------

    @property
    def takes_calls(self) -> bool:
        """What a call will have told can be kept: on disk, if only its figures, or else in the
        database, which takes what it is given."""
        if self._intake.has_room:
            return True
        return self.is_writing and not self._intake.is_behind()

    def begin(self, call_id: str, project_id: int) -> None:
        """Note that a call is under way. Never raises, never waits for the database."""
        try:
            self._intake.begin(call_id, project_id)
        except Exception:
            logger.exception("the start of a call could not be noted")

    def submit(
        self, project: ProjectInfo, caller: str, capture: Capture, at: datetime
    ) -> Unit | None:
        """Take a call in. None: from now on it survives a crash (SIGKILL). Else no file took it,
        and `is_kept` tells when it does.

        caller, at: for a capture that names no caller or start. The capture should have the id
        that `begin` was told. Never raises, never waits for the database; writes one line to the
        page cache.
        """
        try:
            return self._intake.submit(project, caller, capture, at)
        except Exception:
            # Its client has the answer: whatever the call holds, that it was made is recorded.
            logger.exception("a call could not be taken in as it is")
            return self._submit_bare(project, caller, capture, at)

    def _submit_bare(
        self, project: ProjectInfo, caller: str, capture: Capture, at: datetime
    ) -> Unit | None:
        try:
            bare = bare_capture(capture, why="HelmDash failed on what the call holds; see its log")
            return self._intake.submit(project, caller, bare, at, is_bare=True)
        except Exception:
            logger.exception("a call could not be taken in")
            self._intake.count_unreadable()
            return None

    async def is_kept(self, unit: Unit) -> bool:
        """Wait until a call that no file took is stored; False where the database does not take it
        either, or not soon enough."""
        return not unit.is_dropped and await self._settled([unit], seconds=self._limits.timeout)

    def abandon(self, call_id: str) -> None:
        """Note that a call ended with nothing to record. Never raises."""
        try:
            self._intake.abandon(call_id)
        except Exception:
            logger.exception("the end of a call could not be noted")

    async def has_caught_up(self, concerns: Callable[[Capture], bool], *, seconds: float) -> bool:
        """Wait until such calls, as far as they were taken in before now, are stored or given up.

        False: it takes longer than `seconds`, or the database is unavailable, which is told at
        once.
        """
        if not self._is_started or self._writer.is_unavailable or self._writer.is_stuck:
            return False
        return await self._settled(self._intake.unsettled(concerns), seconds=seconds)

    async def _settled(self, waiting: Sequence[Unit], *, seconds: float) -> bool:
        """Wait until these are stored or given up; False: it takes longer, or the database is
        unavailable."""
        if not waiting:
            return True
        news, tell = _bell()
        for unit in waiting:
            unit.watchers.append(tell)
        end = time.monotonic() + seconds
        # Looked at after the bell was hung: one that was settled before does not ring.
        while not all(unit.is_settled for unit in waiting):
            if time.monotonic() > end or self._writer.is_unavailable:
                return False
            self._intake.urge()
            news.clear()
            if not all(unit.is_settled for unit in waiting):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), _LOOK_SECONDS)
        return True

    def hasten(self) -> None:
        """Store what was taken in without waiting for more: somebody will ask for it soon."""
        self._intake.urge()

    def unstored(self, concerns: Callable[[Capture], bool]) -> tuple[Capture, ...] | None:
        """Such calls of the gateway that were taken in and are not stored yet, oldest first.

        None: nobody can tell, since the database is unavailable and calls wait in the spool.
        """
        if not self._is_started or self._writer.is_unavailable:
            return None
        return self._intake.unstored(concerns)

    # -- for the API ----------------------------------------------------------------------------

    def record(
        self,
        *,
        project: ProjectInfo,
        captures: Sequence[Capture],
        caller: str,
        now: datetime,
        size: int | None = None,
        on_loop: bool = False,
    ) -> Answers:
        """Take in a report of calls, which are stored together or not at all.

        size: bytes of the report as it came; None: not known. on_loop: it is short, and this is the
        event loop, which may hand it to the writer process itself (loop_reports).

        The future gives the answers after the commit, or raises RecorderFull or what
        `record_calls` raises. Its `cancel` withdraws a report that nobody has begun to store.
        Raises RecorderFull when there is no room, the database has been unavailable for more than
        `Limits.outage` or silent for more than `Limits.silence`, or the server stops.
        """
        if not self._is_started and not self._is_stopped:
            return self._record_here(project, captures, caller, now)
        if self._writer.is_stuck:
            raise RecorderFull(_SLOW)
        if not captures:
            nothing: Answers = Future()
            nothing.set_result(())
            return nothing
        answers, unit = reported(project, caller, captures, now, size=size)
        if not (on_loop and self._writer.store_on_loop(unit)):
            self._intake.report(unit)
        return answers

    def record_and_wait(
        self,
        *,
        project: ProjectInfo,
        captures: Sequence[Capture],
        caller: str,
        now: datetime,
        size: int | None = None,
    ) -> tuple[Recorded, ...]:
        """`record`, and wait for the answers in this thread. Raises the same."""
        timeout, grace = self._timeouts
        answers = self.record(project=project, captures=captures, caller=caller, now=now, size=size)
        try:
            return answers.result(timeout)
        except WaitedTooLong:
            if answers.cancel():
                raise RecorderFull(_FULL) from None
        # It is being stored at this moment; how that ends is known soon.
        try:
            return answers.result(grace)
        except WaitedTooLong:
            raise RecorderFull(_SLOW) from None

    async def answered(self, answers: Answers) -> tuple[Recorded, ...]:
        """What `record` gave, waited for on an event loop as `record_and_wait` does. Raises the
        same."""
        timeout, grace = self._timeouts
        if not await is_done(answers, within=timeout):
            if answers.cancel():
                raise RecorderFull(_FULL)
            # It is being stored at this moment; how that ends is known soon.
            if not await is_done(answers, within=grace):
                raise RecorderFull(_SLOW)
        return answers.result()

    @property
    def _timeouts(self) -> tuple[float, float]:
        """Seconds to wait for a report to be stored, and then for the end of its transaction."""
        return self._limits.timeout, self._limits.grace

    def wait_for(
        self, project_id: int, concerns: Callable[[Capture], bool], *, seconds: float
    ) -> None:
        """Wait in this thread until such calls of the gateway, as far as this process has them, are
        stored or given up; no longer than `seconds`, nor while the database is unavailable.

        Of the project alone: how long it takes is not to tell what goes on in others.
        """
        if not (self._is_started and self.is_writing):
            return
        unsettled = self._intake.unsettled(concerns)
        waiting = [unit for unit in unsettled if unit.project_id == project_id]
        news = Event()
        for unit in waiting:
            unit.watchers.append(news.set)
        end = time.monotonic() + seconds
        while not all(unit.is_settled for unit in waiting) and self.is_writing:
            if time.monotonic() > end:
                return
            self._intake.urge()
            news.wait(_LOOK_SECONDS)
            news.clear()

    # -- how it stands --------------------------------------------------------------------------

    @property
    def is_started(self) -> bool:
        """A thread stores what is taken in."""
        return self._is_started

    def state(self) -> RecorderState:
        """What happens to the next call."""
        if self._is_stopped or self._writer.has_failed:
            return RecorderState.STOPPED
        if not self.takes_calls:
            return RecorderState.FULL
        if self._writer.is_unavailable or self._writer.is_stuck or self._intake.is_behind():
            return RecorderState.SPOOLING
        return RecorderState.STORING

    def waiting(self) -> int:
        """Calls that are not stored yet, reports that wait for their turn included."""
        return self._intake.waiting()

    def queued(self) -> tuple[int, int]:
        """Calls and bytes that wait in memory."""
        return self._intake.queued()

    @property
    def is_writing(self) -> bool:
        """The database took what it was given last, as far as anything was."""
        writer = self._writer
        return not (writer.is_unavailable or writer.is_stuck or writer.has_failed)

    def spool_problem(self) -> str | None:
        """Why a call could not wait on disk just now; None when it could. Asks the disk, which
        may take its time."""
        return disk_problem(self._spool_dir) if self._is_started else None

    def stuck_files(self) -> tuple[StuckFiles, ...] | None:
        """What processes of this host that ended have left, and cannot be read; None: the disk does
        not say so in time."""
        try:
            return with_timeout(partial(stuck_files, self._spool_dir), about="disk")
        except DatabaseNotResponding:
            return None

    def own_ledger(self) -> ProcessLedger:
        """The numbers of this process as they are now."""
        return ProcessLedger(
            name=self.name,
            started_at=self._started_at,
            seen_at=self._clock(),
            stopped_at=None,
            counts=self._intake.counts(),
            is_own=True,
        )

    # -- for the server -------------------------------------------------------------------------

    @property
    def has_writer_process(self) -> bool:
        """Calls are stored by the host's writer process, and not by a thread of this one."""
        return self._is_started and self._link is not None and self._link.is_up

    def start(self, link: WriterLink | None = None) -> None:
        """Begin to store, first of all what earlier processes left in the spool.

        link: to the host's writer process, which stores while it is there; None: a thread does.
        Reads those files once; does not need the database. Does nothing when started already.
        """
        if self._is_started:
            return
        self._intake.open()
        self._link = link
        self._writer = self._new_writer()
        self._is_stopped = False
        self._is_started = True
        self._writer.start()

    def stop(self, drain_seconds: float = 5.0) -> None:
        """Take no more reports in, store what waits, and end. Blocks.

        What could not be stored within `drain_seconds` stays in the spool for the next start.
        """
        if not self._is_started:
            return
        self._is_stopped = True
        self._writer.stop(drain_seconds)
        self._intake.refuse_reports(RecorderFull("The server is stopping."))
        self._intake.close()
        self._is_started = False

    def settle(self, seconds: float = 10.0) -> bool:
        """Wait until all that was taken in is stored or given up; False when it takes longer.

        Where nobody started the recorder: store it here and now, on the caller's connection.
        """
        if not self._is_started:
            while units := self._intake.take():
                self._store_here(units)
            return True
        end = time.monotonic() + seconds
        while not self._intake.is_empty():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def has_leftovers(self) -> bool:
        """Whether a process that has ended, or one that lives, has files in the spool."""
        names = ("*.lock", SEGMENTS)
        return any(path for name in names for path in self._spool_dir.glob(name))

    def forget_rejected(self, *, project_id: int, conversation: str) -> int:
        """Drop what was put aside of a conversation; how many calls. Raises OSError."""
        DamagedLines(self._spool_dir).forget(conversation)
        return self._rejected.forget(project_id=project_id, conversation=conversation)

    def _store_here(self, units: Sequence[Unit]) -> None:
        try:
            self._writer.attempt(units)
        finally:
            self._intake.give_back(units)

    def _record_here(
        self, project: ProjectInfo, captures: Sequence[Capture], caller: str, now: datetime
    ) -> Answers:
        answers: Answers = Future()
        unit = Unit(
            project_id=project.id,
            project=project,
            captures=tuple(captures),
            size=0,
            answers=answers,
        )
        try:
            recorded = record_calls(project=project, captures=captures, caller=caller, now=now)
        except Exception as error:
            answers.set_exception(error)
        else:
            self._intake.finish([stored(unit, recorded)])
            answers.set_result(recorded)
        return answers

    def _new_writer(self) -> Writer:
        return Writer(
            self._intake,
            self._rejected,
            limits=self._limits,
            clock=self._clock,
            own_ledger=self.own_ledger,
            link=self._link,
        )


def _bell() -> tuple[asyncio.Event, Callable[[], None]]:
    """Something to wait for on this event loop, and what rings it from any thread."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(news.set)

    return news, tell


@cache
def recorder() -> Recorder:
    """The recorder of this process, made at its first use."""
    env = conf.env()
    return Recorder(
        spool_dir=env.data_dir / "spool",
        spool_max_bytes=env.spool_max_bytes,
        # A thread of its own: nobody could pass it the time.
        clock=timezone.now,  # noqa: TID251
    )


def start() -> None:
    """Start the recorder of this process: when the server starts.

    From then on the process makes no SQLite file where there is none, and waits for no lock longer
    than its clients do.
    """
    open_only_existing()
    limit_lock_waits()
    recorder().start(_link())


def _link() -> WriterLink | None:
    """To the writer process of `manage.py up`; None where another program started the server."""
    path, mode = conf.writer_socket(), conf.env().writer
    if not path or mode == "thread":
        return None
    return WriterLink(path, after_calls=0 if mode == "process" else _WORTH_A_PROCESS)


def stop(drain_seconds: float = 5.0) -> None:
    """Drain and stop the recorder of this process: after the last request was answered."""
    recorder().stop(drain_seconds)


def _process_name(started_at: datetime) -> str:
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:24] or "host"
    return f"{host}-{os.getpid()}-{started_at.astimezone(UTC):%Y%m%dT%H%M%S%f}"
