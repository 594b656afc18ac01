"""The thread that stores: takes what waits, writes it in groups, tries again while it has to."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from django.db import connection

from helmdash.operations import ledger
from helmdash.operations.database.sqlite_file import FileWatch
from helmdash.operations.recorder import group_commit
from helmdash.operations.recorder.files.units import Outcome, Unit
from helmdash.operations.recorder.group_commit import NoSuchProject, resolve
from helmdash.operations.recorder.intake import Intake
from helmdash.operations.recorder.link import LinkLost, WriterLink
from helmdash.operations.recorder.loop_reports import LoopReports
from helmdash.operations.recorder.own_connection import use_own_connection
from helmdash.operations.recorder.rejected_calls import RejectedCalls
from helmdash.operations.recorder.terms import Limits, RecorderFull
from helmdash.operations.recorder.wire import Group
from helmdash.queries.ledger import LedgerCounts, ProcessLedger, others

logger = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS = 0.1
_LAST_RETRY_SECONDS = 2.0
_LEDGER_SECONDS = 1.0
# A row that is not written to says at least once a minute that its process lives.
_HEARTBEAT_SECONDS = 60.0
# A power cut while the database is unavailable may cost the calls of this long, no more.
_SYNC_SECONDS = 0.05


class Writer:
    """Stores what an intake holds, until it is told to stop."""

    def __init__(
        self,
        intake: Intake,
        rejected: RejectedCalls,
        *,
        limits: Limits,
        clock: Callable[[], datetime],
        own_ledger: Callable[[], ProcessLedger],
        link: WriterLink | None = None,
    ) -> None:
        self._intake = intake
        self._rejected = rejected
        self._limits = limits
        self._clock = clock
        self._own_ledger = own_ledger
        self._process = own_ledger()  # for its name and start, which stay
        self._link = link
        self._loop_reports: LoopReports | None = None
        if link is not None:
            self._loop_reports = LoopReports(
                intake,
                link,
                group_of=self._group_of,
                finish=self._finish,
                doubt=self._begin_to_doubt,
            )
        intake.keeps_lines = link is not None
        self._watch: FileWatch | None = None
        self._away_since: float | None = None
        self._asked_at: float | None = None
        self._deadline: float | None = None
        self._noted: tuple[float, LedgerCounts] | None = None
        self._looked_at: float | None = None
        self._is_running = False
        self._has_failed = False
        # The writer process ended, and our row of the ledger says what it had stored by then.
        self._is_in_doubt = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._syncing = threading.Thread(target=self._sync, name="recorder-sync", daemon=True)

    @property
    def is_unavailable(self) -> bool:
        """The database did not answer when it was asked last."""
        return self._away_since is not None

    @property
    def is_stuck(self) -> bool:
        """The database was asked something, and has said nothing for longer than is usual.

        One that hangs is not told by an error, which may take minutes to come.
        """
        asked_at = self._asked_at
        if asked_at is None and self._loop_reports is not None:
            asked_at = self._loop_reports.asked_at
        return asked_at is not None and time.monotonic() - asked_at > self._limits.silence

    @property
    def has_failed(self) -> bool:
        """The thread ended by a fault of its own."""
        return self._has_failed

    def start(self) -> None:
        """Begin the one thread that writes."""
        self._thread.start()
        self._syncing.start()

    def store_on_loop(self, unit: Unit) -> bool:
        """Have a short report stored without this thread, called on the event loop. False: it is
        to be queued."""
        return (
            self._loop_reports is not None
            and not (self.is_unavailable or self._is_in_doubt)
            and self._deadline is None
            and self._loop_reports.store(unit)
        )

    def stop(self, drain_seconds: float) -> None:
        """Store what waits and end; blocks for a little more than `drain_seconds` at most."""
        self._deadline = end = time.monotonic() + drain_seconds
        if self._loop_reports is not None:
            self._loop_reports.end(drain_seconds)
        self._intake.hurry()
        # The thread keeps the deadline itself, unless a statement hangs.
        self._thread.join(max(end - time.monotonic(), 0.0) + 1.0)

    def attempt(self, units: Sequence[Unit]) -> None:
        """Store what is not stored yet of these. Raises what an unavailable database raises."""
        waiting = [unit for unit in units if not unit.is_settled]
        if self._is_in_doubt:
            self._look_back(waiting)
        if waiting and self._is_running and self._link is not None and self._link.is_ready():
            self._hand_over(waiting, self._link)
            return
        self._store_here(waiting)

    def _store_here(self, waiting: Sequence[Unit]) -> None:
        missing = [Outcome(unit, fault=NoSuchProject()) for unit in resolve(waiting)]
        self._finish(missing)
        for group in group_commit.groups([unit for unit in waiting if not unit.is_settled]):
            self._check()
            for outcomes in group_commit.store(group, now=self._clock(), book=self._book):
                self._finish(outcomes)
        if self._link is not None:
            self._link.note(sum(len(unit.captures) for unit in waiting))

    def _hand_over(self, waiting: Sequence[Unit], link: WriterLink) -> None:
        """Have the writer process store them. Where it ends meanwhile, they are stored here."""
        try:
            for outcomes in link.store(self._group_of(waiting)):
                self._finish(outcomes)
        except LinkLost as error:
            self._begin_to_doubt(error)
            self.attempt(waiting)

    def _group_of(self, units: Sequence[Unit]) -> Group:
        counts, spool_bytes = self._intake.copied()
        return Group(
            process=self._process.name,
            started_at=self._process.started_at,
            spool_bytes=spool_bytes,
            counts=counts,
            units=list(units),
        )

    def _begin_to_doubt(self, error: LinkLost) -> None:
        logger.warning("the writer process has ended; calls are stored here (%s)", error)
        self._is_in_doubt = True

    def _look_back(self, units: Sequence[Unit]) -> None:
        """See in the ledger how much the writer process had stored of what it did not answer."""
        known = self._intake.counts()
        booked = ledger.settled_counts(self._own_ledger().name)
        stored = max(booked.stored - known.stored, 0)
        bare = max(booked.bare - known.bare, 0)
        self._intake.doubt(units, stored=stored, bare=bare)
        self._is_in_doubt = False
        self._noted = (float("-inf"), booked)

    def _run(self) -> None:
        self._watch = FileWatch()
        self._is_running = True
        try:
            use_own_connection()
            while self._work():
                pass
            self._intake.tidy(is_idle=True)
            self._intake.leave_adopted()
            self._note(is_last=True)
        except Exception:
            self._has_failed = True
            self._intake.refuse_reports(RecorderFull("The recorder has failed; see the log."))
            logger.exception("the recorder has ended")
        finally:
            if self._link is not None:
                self._link.close()
            with contextlib.suppress(Exception):
                connection.close()

    def _work(self) -> bool:
        """One round; False when it was the last."""
        if self._is_late():
            return False
        if self._intake.wait(0.0 if self._deadline is not None else _LEDGER_SECONDS):
            units = self._intake.take()
            if not self._store(units):
                left = [unit for unit in units if not unit.is_settled]
                self._intake.refuse_reports(RecorderFull("The server is stopping."), held=left)
                self._intake.give_back(left)
                return False
            self._intake.tidy(is_idle=False)
            self._note()
            return True
        if self._deadline is not None:
            return False
        if self._link is not None:
            self._link.look()
        self._look_for_database()
        self._intake.tidy(is_idle=True)
        self._note()
        return True

    def _store(self, units: Sequence[Unit]) -> bool:
        """Store units, for as long as it takes; False when the time to stop comes before."""
        delay = _FIRST_RETRY_SECONDS
        while True:
            began = time.monotonic()
            try:
                with self._asking():
                    self._check()
                    self._book_dead()
                    self.attempt(units)
                self._discard_read_out()
            except Exception as error:
                self._lose_database(error, began)
                if time.monotonic() - (self._away_since or began) > self._limits.outage:
                    left = [unit for unit in units if not unit.is_settled]
                    self._intake.refuse_reports(
                        RecorderFull("The database is unavailable."),
                        held=[unit for unit in left if unit.answers is not None],
                    )
                    units = [unit for unit in left if unit.answers is None]
                    if not units:
                        # To store nothing would go well, and show nothing.
                        return True
                if self._sleep(delay):
                    return False
                delay = min(delay * 2, _LAST_RETRY_SECONDS)
            else:
                self._find_database()
                return True

    def _finish(self, outcomes: Sequence[Outcome]) -> None:
        """Book what became of units, and answer who waits."""
        if not outcomes:
            return
        if any(outcome.fault is not None for outcome in outcomes):
            self._book(outcomes)
        self._intake.finish(outcomes)
        for outcome in outcomes:
            unit, fault = outcome.unit, outcome.fault
            if unit.answers is None:
                if fault is not None:
                    self._rejected.keep(unit, why=group_commit.reason(fault))
            elif fault is None:
                unit.answers.set_result(outcome.answers)
            else:
                unit.answers.set_exception(fault)

    def _book(self, outcomes: Sequence[Outcome]) -> None:
        """Write the ledger's row as it will be with these outcomes, in the caller's transaction.

        So that what the row says is stored is stored, whenever the process is killed.
        """
        if not self._is_running:
            return
        group_commit.book(replace(self._own_ledger(), counts=self._intake.counts(after=outcomes)))

    def _book_dead(self) -> None:
        """Close the rows of dead processes: from now on what they left counts here only."""
        for orphaned in self._intake.unbooked():
            ledger.close(
                name=orphaned.process,
                began_at=datetime.fromtimestamp(orphaned.began_at, UTC),
                in_flight_lost=len(orphaned.in_flight),
                now=self._clock(),
            )
            self._intake.booked(orphaned)

    def _discard_read_out(self) -> None:
        """All that a dead process left is stored: delete its files."""
        while (orphaned := self._intake.read_out) is not None:
            self._intake.discard(orphaned)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        self._asked_at = time.monotonic()
        try:
            yield
        finally:
            self._asked_at = None

    # -- the database comes and goes ------------------------------------------------------------

    def _check(self) -> None:
        if self._watch is not None:
            self._watch.check()

    def _look_for_database(self) -> None:
        """With nothing to store: let go of a file that is taken away, and see it come back.

        It is back when it takes a write: a full, a locked and a read-only one are read as ever.
        """
        try:
            with self._asking():
                self._check()
                if self._away_since is not None:
                    ledger.try_to_write(self._own_ledger().name, now=self._clock())
        except Exception as error:
            self._lose_database(error, time.monotonic())
        else:
            self._find_database()

    def _lose_database(self, error: Exception, began: float) -> None:
        if not group_commit.is_unavailable(error):
            logger.error("the recorder failed and tries again", exc_info=error)
        elif self._away_since is None:
            logger.warning(
                "calls cannot be stored now (%s); those of the gateway wait in the spool",
                group_commit.reason(error),
            )
        if self._away_since is None:
            self._away_since = began
        self._intake.stalled.set()
        with contextlib.suppress(Exception):
            connection.close()

    def _find_database(self) -> None:
        if self._away_since is not None:
            away = time.monotonic() - self._away_since
            logger.warning("calls are stored again, after %.1f s", away)
            self._away_since = None
            self._intake.refuse_reports(None)
        if self._intake.stalled.is_set():
            self._intake.calm()

    def _sleep(self, seconds: float) -> bool:
        """Wait before the next try; True when it is time to stop."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._is_late():
            time.sleep(min(0.05, seconds))
        return self._is_late()

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _note(self, *, is_last: bool = False) -> None:
        """Write the ledger's row: at most once a second, and then only news."""
        if self._is_in_doubt:
            return
        moment = time.monotonic()
        age = moment - self._noted[0] if self._noted is not None else _HEARTBEAT_SECONDS
        if age < _LEDGER_SECONDS and not is_last:
            return
        counts = self._intake.counts()
        is_news = self._noted is None or counts != self._noted[1]
        if not is_news and not is_last and age < _HEARTBEAT_SECONDS:
            return
        try:
            with self._asking():
                self._check()
                self._book_dead()
                row = self._own_ledger()
                if is_last:
                    row = replace(row, stopped_at=row.seen_at)
                if self._noted is None:
                    ledger.fold(now=self._clock())
                ledger.write(row)
                self._look_around(moment)
        except Exception as error:
            if not group_commit.is_unavailable(error):
                logger.exception("the recorder's ledger cannot be written")
            with contextlib.suppress(Exception):
                connection.close()
        else:
            self._noted = (moment, row.counts)

    def _look_around(self, moment: float) -> None:
        """Read now and then what the other rows say, which /metrics tells in an outage."""
        if self._looked_at is None or moment - self._looked_at >= _HEARTBEAT_SECONDS:
            others(self._own_ledger().name)
            self._looked_at = moment

    def _sync(self) -> None:
        """The second thread: while calls wait in the spool, bring them to the disk in groups; and
        see that nobody else has cut its files."""
        while self._thread.is_alive():
            is_stalled = self._intake.stalled.wait(1.0)
            self._intake.mend_files()
            self._intake.keep_room()
            if is_stalled:
                self._intake.sync()
                time.sleep(_SYNC_SECONDS)
