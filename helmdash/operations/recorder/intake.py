"""What waits to be stored: in memory up to a bound, in the spool beyond it. No database here.

Filled by the event loop (calls of the gateway) and by request threads (reports to the API), emptied
by the writer. One lock guards queues, counts and the spool's books, and is held for moments only.

Calls of the gateway leave in the order they came: what earlier processes left, then the queue in
memory, then the backlog, which is everything in the spool from one place on. While there is a
backlog, new calls join it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from helmdash.core.calls.capture import Capture
from helmdash.operations.recorder.capture_json import (
    bare_capture,
    dump_capture,
    has_texts,
    make_storable,
)
from helmdash.operations.recorder.counting import count, counted
from helmdash.operations.recorder.files.damaged_lines import DamagedLines
from helmdash.operations.recorder.files.orphaned_segments import Adoption, OrphanedSegments, adopt
from helmdash.operations.recorder.files.spool import Entry, Spool
from helmdash.operations.recorder.files.spool_lines import read_line
from helmdash.operations.recorder.files.units import (
    Outcome,
    Unit,
    completed,
    unit_of,
)
from helmdash.operations.recorder.files.written_again import lines_again
from helmdash.operations.recorder.kept_texts import spooled, spooled_figures
from helmdash.operations.recorder.terms import Counts, Limits, RecorderFull
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.ledger import LedgerCounts

logger = logging.getLogger(__name__)

# So many reports in a row come alone, each after the one before, where one client sends them. Of
# sixteen clients' some do too; they would lose a tenth of their rate to groups that are split.
_LONE = 8
# A group of 500 takes four milliseconds to settle, for which the event loop would wait.
_AT_A_TIME = 50
_NO_ROOM = "the disk had no room for it, and HelmDash was killed before it was stored"
_CUT = (
    "the spool's file %s was cut, moved or deleted by somebody else; %d calls that are in memory "
    "were written down again"
)


class Intake:
    """The queues of one recorder."""

    def __init__(self, *, directory: Path, name: str, max_bytes: int, limits: Limits) -> None:
        self._directory = directory
        self._limits = limits
        self._spool = Spool(directory, name, max_bytes=max_bytes)
        self._aside = DamagedLines(directory)
        self._counts = Counts()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        # Set when there is a reason not to linger.
        self._urgent = threading.Event()
        # Set while calls wait in the spool for longer than usual.
        self.stalled = threading.Event()
        # Whether the JSON of a call is kept beside it, for who hands it on.
        self.keeps_lines = False
        self._is_spooling = self._is_closed = False
        self._refusal: RecorderFull | None = None
        # How many in a row came alone.
        self._lone_reports = 0
        # The writer's thread waits for something to do.
        self._is_resting = False
        # The event loop hands a report over itself, and the thread is not to (loop_reports).
        self._is_reserved = False
        # What the loop has begun and the thread is to end.
        self._left: list[Unit] = []
        self._reports: deque[Unit] = deque()
        self._report_calls = self._report_bytes = 0
        # How many were taken together last, and how many are to come before the writer wakes.
        self._latest_reports = self._expected_reports = 1
        self._queue: deque[Unit] = deque()
        self._queue_calls = self._queue_bytes = 0
        self._backlog = 0
        self._backlog_at: Entry | None = None
        # Somebody cut a file of ours: what waits in it may be gone.
        self._is_cut = False
        self._adopted = Adoption()
        self._taken: list[Unit] = []  # by the writer, and not all settled
        # The writer reads calls back from a spool: until it has, they are nowhere else.
        self._is_reading_back = False
        # Accepted from other processes' spools, and neither stored nor given up.
        self._adopted_calls = self._left_behind = 0

    # -- calls of the gateway -------------------------------------------------------------------

    def begin(self, call_id: str, project_id: int) -> None:
        """Note in the spool that a call is under way."""
        if self._is_spooling:
            with self._lock:
                self._spool.begin(call_id, project_id)

    @property
    def has_room(self) -> bool:
        """The spool has room for what is under way and one call more, if not for their texts."""
        with self._lock:
            return not self._is_spooling or self._spool.has_room

    def keep_room(self) -> None:
        """Keep some of the disk back for when it is full."""
        with self._lock:
            self._spool.keep_room()

    def abandon(self, call_id: str) -> None:
        """Note in the spool that a call ended with nothing to record."""
        if self._is_spooling:
            with self._lock:
                self._spool.end(call_id)

    def submit(
        self,
        project: ProjectInfo,
        caller: str,
        capture: Capture,
        at: datetime,
        *,
        is_bare: bool = False,
    ) -> Unit | None:
        """Take a call in: write it to the spool, then queue it or leave it there.

        None: it survives a crash. Else it is in memory alone, or dropped, until it is stored.
        """
        capture = make_storable(completed(capture, caller=caller, at=at))
        capture, body, whole = spooled(capture, project)
        if self._spool.is_short and has_texts(capture):
            body = spooled_figures(capture, project)
        unit = Unit(
            project_id=project.id,
            project=project,
            captures=(capture,),
            size=len(body),
            is_queued=True,
            is_bare=is_bare,
        )
        if self.keeps_lines:
            unit.body = whole
        with self._lock:
            self._counts.accepted += 1
            unit.entry = self._write_down(unit, body)
            if unit.entry is None and self._may_queue(unit):
                self._write_down_less(unit, project)
            elif unit.entry is None:
                self._make_bare(unit, project)
            if self._may_queue(unit):
                self._put_into_queue(unit)
            elif unit.entry is not None:
                self._counts.spooled += 1
                self._backlog += 1
                self._backlog_at = self._backlog_at or unit.entry
                self.stalled.set()
            else:
                unit.is_dropped = True
                self._counts.dropped += 1
        return unit if unit.entry is None and self._is_spooling else None

    def _write_down(self, unit: Unit, body: bytes) -> Entry | None:
        """Write a call to the spool; None where it has no room or is not used."""
        if not self._is_spooling:
            return None
        (capture,) = unit.captures
        return self._spool.add(project_id=unit.project_id, capture=body, call_id=capture.id or "")

    def _write_down_less(self, unit: Unit, project: ProjectInfo) -> None:
        """The disk has no room for the call as it is, and memory has: a crash is to leave as much
        of it as can be."""
        (capture,) = unit.captures
        for less in (capture, bare_capture(capture, why=_NO_ROOM)):
            if self._is_spooling and unit.entry is None:
                unit.entry = self._write_down(unit, spooled_figures(less, project))

    def _make_bare(self, unit: Unit, project: ProjectInfo) -> None:
        """Neither disk nor memory has room for the call as it is: perhaps for its figures."""
        (capture,) = unit.captures
        capture = dump_capture(bare_capture(capture, why="too large to wait"))[0]
        body = spooled_figures(capture, project)
        unit.captures, unit.size, unit.is_bare = (capture,), len(body), True
        unit.body = None
        unit.entry = self._write_down(unit, body)

    def _may_queue(self, unit: Unit) -> bool:
        """False: it must wait in the spool, behind others or until the database is back."""
        is_wanted = self._refusal is None or unit.entry is None
        return (
            is_wanted
            and not self._is_closed
            and self._backlog == 0
            and self._has_room(1, unit.size)
        )

    def count_unreadable(self) -> None:
        """Count a call that could not even be written down."""
        with self._lock:
            self._counts.accepted += 1
            self._counts.rejected += 1

    def _put_into_queue(self, unit: Unit) -> None:
        self._queue.append(unit)
        self._queue_calls += 1
        self._queue_bytes += unit.size
        waiting = len(self._queue)
        if waiting == 1:
            self._notify()
        elif waiting == self._limits.batch_calls:
            self._urgent.set()

    def _has_room(self, calls: int, size: int) -> bool:
        return (
            self._queue_calls + self._report_calls + calls <= self._limits.queue_calls
            and self._queue_bytes + self._report_bytes + size <= self._limits.queue_bytes
        )

    # -- reports to the API ---------------------------------------------------------------------

    def report(self, unit: Unit) -> None:
        """Queue a report; its promise is kept when it is stored. Raises RecorderFull."""
        calls = len(unit.captures)
        with self._lock:
            if self._refusal is not None:
                raise RecorderFull(str(self._refusal))
            # A report of any size is taken in when no other waits.
            if self._reports and not self._has_room(calls, unit.size):
                raise RecorderFull("The recorder has too much to store just now.")
            self._reports.append(unit)
            self._report_calls += calls
            self._report_bytes += unit.size
            if len(self._reports) >= self._expected_reports:
                self._notify()
            self._urgent.set()

    def reserve(self) -> bool:
        """Whether the writer's thread has nothing to do. It leaves the writer process alone then,
        until `release`: what comes meanwhile waits, and is a group."""
        # Before the lock: of many clients' reports each would wait for it twice.
        if self._lone_reports < _LONE:
            return False
        with self._lock:
            is_free = (
                self._is_resting
                and not (self._is_reserved or self._is_closed or self._has_work())
                and self._refusal is None
            )
            self._is_reserved = self._is_reserved or is_free
            return is_free

    def release(self, left: Unit | None = None) -> None:
        """Let the thread go on. left: a report that it is to store, with nothing else beside it."""
        with self._lock:
            self._is_reserved = False
            if self._reports:
                self._lone_reports = 0
            if left is not None:
                self._left.append(left)
            if self._has_work() or not self._is_resting:
                self._wake.notify()

    def refuse_reports(self, why: RecorderFull | None, held: Sequence[Unit] = ()) -> None:
        """Turn reports away from now on, also those that wait or are `held`; None: no longer."""
        with self._lock:
            self._refusal = why
            if why is None:
                return
            given_up = [*held, *self._left, *self._reports]
            self._left.clear()
            self._reports.clear()
            self._report_calls = self._report_bytes = 0
        for unit in given_up:
            answers = unit.answers
            if answers is not None and (
                answers.running() or answers.set_running_or_notify_cancel()
            ):
                answers.set_exception(why)

    # -- the writer's side ----------------------------------------------------------------------

    def wait(self, seconds: float) -> bool:
        """Wait for something to store; False when nothing came. Lingers for a group to gather."""
        with self._lock:
            if self._is_reserved or not self._has_work():
                self._urgent.clear()
                self._rest(seconds)
            if not self._has_work():
                return False
            if 0 < len(self._reports) < self._latest_reports and self._refusal is None:
                self._expected_reports = self._latest_reports
                self._wake.wait(self._limits.rejoin)
                self._expected_reports = 1
            is_worth_waiting = not (
                self._reports
                or self._backlog
                or self._adopted.is_waiting
                or len(self._queue) >= self._limits.batch_calls
                or self._refusal is not None
            )
        if is_worth_waiting:
            self._gather()
        self._urgent.clear()
        return True

    def _rest(self, seconds: float) -> None:
        self._is_resting = True
        self._wake.wait(seconds)
        # From here on the loop reserves nothing new, and says when it is done.
        self._is_resting = False
        while self._is_reserved:
            self._wake.wait()

    def _notify(self) -> None:
        """Wake the writer, unless it may not do anything yet."""
        if not self._is_reserved:
            self._wake.notify()

    def _gather(self) -> None:
        """Let a group grow while calls keep coming in."""
        limits, waited = self._limits, 0.0
        while waited < limits.most_linger:
            before = len(self._queue)
            if self._urgent.wait(limits.linger) or len(self._queue) < before + limits.rush:
                return
            waited += limits.linger

    def hurry(self) -> None:
        """Wake the writer."""
        with self._lock:
            self._wake.notify()
        self._urgent.set()
        self.stalled.set()

    def take(self) -> list[Unit]:
        """What is to be stored next: reports first, for somebody waits for those."""
        with self._lock:
            left, self._left = self._left, []
            units = left or self._pop_reports()
            queued = [] if left or self._adopted.is_waiting else self._pop_queued()
            # In the same moment, so that a unit is always seen in one place or the other.
            self._taken = units = [*units, *queued]
            self._is_reading_back = not (left or queued)
        return self._read_back(units) if self._is_reading_back else units

    def _read_back(self, units: list[Unit]) -> list[Unit]:
        found = self._take_adopted() if self._adopted.is_waiting else self._take_backlog()
        with self._lock:
            self._taken = units = [*units, *found]
            self._is_reading_back = False
        return units

    def unsettled(self, concerns: Callable[[Capture], bool]) -> list[Unit]:
        """Calls of the gateway that wait at this moment; those in the spool only are left out."""
        with self._lock:
            waiting = [*self._taken, *self._queue]
        return _concerned(waiting, concerns)

    def unstored(self, concerns: Callable[[Capture], bool]) -> tuple[Capture, ...] | None:
        """The same as captures, oldest first; None while some wait in the spool only."""
        with self._lock:
            if self._backlog or self._adopted.is_waiting or self._is_reading_back:
                return None
            waiting = [*self._taken, *self._queue]
        found = _concerned(waiting, concerns)
        return tuple(capture for unit in found for capture in unit.captures if concerns(capture))

    def urge(self) -> None:
        """Somebody waits: no group is to gather."""
        self._urgent.set()

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Count what became of units, and let the spool go of them."""
        for start in range(0, len(outcomes), _AT_A_TIME):
            self._settle(outcomes[start : start + _AT_A_TIME])
        for outcome in outcomes:
            for tell in outcome.unit.watchers:
                tell()

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        calls = size = 0
        entries: list[Entry] = []
        with self._lock:
            for outcome in outcomes:
                unit = outcome.unit
                unit.is_settled = True
                if unit.is_queued:
                    calls += 1
                    size += unit.size
                if unit.entry is not None:
                    entries.append(unit.entry)
            count(self._counts, outcomes)
            for outcome in outcomes:
                self._settle_adopted(outcome.unit)
            self._queue_calls -= calls
            self._queue_bytes -= size
            self._taken = [unit for unit in self._taken if not unit.is_settled]
            self._spool.settle(entries)

    def _settle_adopted(self, unit: Unit) -> None:
        if not unit.is_adopted:
            return
        if self._adopted_calls:
            self._adopted_calls -= 1
        else:
            # Left behind already, and stored after all: the statement took longer than the stop.
            self._counts.accepted += 1

    def give_back(self, units: Sequence[Unit]) -> None:
        """Put calls that were taken and not stored back to the front of the queue."""
        with self._lock:
            self._queue.extendleft(
                unit for unit in reversed(units) if unit.is_queued and not unit.is_settled
            )

    def tidy(self, *, is_idle: bool) -> None:
        """Delete spooled calls that are stored."""
        with self._lock:
            gone = self._spool.tidy(is_idle=is_idle)
        self._spool.remove(gone)

    def mend_files(self) -> None:
        """Write calls down again that are in memory, where somebody cut or deleted our files."""
        for segment in self._spool.broken():
            with self._lock:
                units = [
                    unit for unit in self._held() if unit.entry and unit.entry.segment is segment
                ]
            lines = lines_again(units)
            with self._lock:
                for unit in units:
                    if unit.is_settled and unit.entry:
                        lines.pop(unit.entry, None)
                if self._spool.mend(segment, lines):
                    self._is_cut = True
                    logger.error(_CUT, segment.path.name, len(lines))

    def _held(self) -> Iterator[Unit]:
        """Calls that are in memory and in the spool. Under the lock."""
        for unit in (*self._taken, *self._queue):
            if unit.entry is not None and not unit.is_settled:
                yield unit

    def sync(self) -> None:
        """Bring the spool to the disk; let `stalled` go once nothing waits there."""
        self._spool.sync()

    def calm(self) -> None:
        """The database answers: the spool need not be brought to the disk any more."""
        with self._lock:
            if not self._backlog:
                self.stalled.clear()

    def unbooked(self) -> list[OrphanedSegments]:
        """Dead processes whose rows in the ledger are not closed."""
        return self._adopted.unbooked()

    def booked(self, orphaned: OrphanedSegments) -> None:
        """The row of a dead process is closed and says what was under way there."""
        orphaned.mark_counted()
        orphaned.is_booked = True
        with self._lock:
            self._counts.in_flight_lost -= len(orphaned.in_flight)

    @property
    def read_out(self) -> OrphanedSegments | None:
        """A dead process whose calls have all been taken, to be discarded once they are stored;
        None: there is none."""
        return self._adopted.read_out

    def discard(self, orphaned: OrphanedSegments) -> None:
        """Delete the files of a dead process."""
        orphaned.discard()
        with self._lock:
            self._spool.foreign_size -= orphaned.size
            self._adopted.forget(orphaned)

    def _has_work(self) -> bool:
        return bool(self._left or self._reports or self._queue or self._backlog or self._adopted)

    def _pop_reports(self) -> list[Unit]:
        units: list[Unit] = []
        calls, size = self._limits.batch_calls, self._limits.batch_bytes
        while self._reports:
            unit = self._reports[0]
            if units and (len(unit.captures) > calls or unit.size > size):
                break
            self._reports.popleft()
            self._report_calls -= len(unit.captures)
            self._report_bytes -= unit.size
            if unit.answers is not None and unit.answers.set_running_or_notify_cancel():
                units.append(unit)
                calls -= len(unit.captures)
                size -= unit.size
        if units:
            self._latest_reports = len(units)
            self._lone_reports = self._lone_reports + 1 if len(units) == 1 else 0
        return units

    def _pop_queued(self) -> list[Unit]:
        units: list[Unit] = []
        size = self._limits.batch_bytes
        while self._queue and len(units) < self._limits.batch_calls and size > 0:
            units.append(self._queue.popleft())
            size -= units[-1].size
        return units

    def _take_backlog(self) -> list[Unit]:
        with self._lock:
            start, waiting = self._backlog_at, self._backlog
        if start is None:
            return []
        calls = min(self._limits.batch_calls, waiting)
        found = list(self._spool.read(start, calls=calls, size=self._limits.batch_bytes))
        lost = self._count_lost(start) if self._is_cut or not found else 0
        units: list[Unit] = []
        spoilt: list[tuple[Entry, bytes]] = []
        for entry, line in found:
            unit = unit_of(read_line(line), entry)
            if unit is not None:
                unit.line = line
                units.append(unit)
            else:
                spoilt.append((entry, line))
        if spoilt:
            self._aside.keep([line for _, line in spoilt])
            logger.error("%d calls that waited in the spool cannot be read", len(spoilt))
        with self._lock:
            self._backlog -= len(found)
            self._counts.damaged_lines += len(spoilt)
            self._counts.dropped += len(spoilt)
            self._spool.settle([entry for entry, _ in spoilt])
            if not (found or lost):
                logger.error("%d spooled calls are not in the spool", self._backlog)
                self._counts.dropped += self._backlog
                self._backlog = 0
            if not self._backlog:
                self._backlog_at = None
            elif found:
                self._backlog_at = _after(found[-1][0])
        return units

    def _count_lost(self, start: Entry) -> int:
        """Give up the calls from `start` on that waited only in a file that somebody cut."""
        with self._lock:
            self._is_cut = False
            expected = self._spool.expected([unit.entry for unit in self._held() if unit.entry])
        missing = self._spool.count(start, expected)
        lost = sum(missing.values())
        if lost:
            logger.error("%d calls that waited in the spool cannot be read back", lost)
            with self._lock:
                self._spool.give_up(missing)
                self._backlog -= lost
                self._counts.dropped += lost
        return lost

    def _take_adopted(self) -> list[Unit]:
        limits = self._limits
        units: list[Unit] = []
        spoilt: list[bytes] = []
        for told, line in self._adopted.take(calls=limits.batch_calls, size=limits.batch_bytes):
            unit = unit_of(told, None)
            if unit is not None:
                units.append(unit)
            else:
                spoilt.append(line)
        if spoilt:
            self._aside.keep(spoilt)
            with self._lock:
                # Taken for calls when they were counted, and none.
                self._adopted_calls -= len(spoilt)
                self._counts.accepted -= len(spoilt)
                self._counts.damaged_lines += len(spoilt)
        return units

    # -- opening, closing, standing -------------------------------------------------------------

    def open(self) -> None:
        """Use the spool from now on, and take over what processes that ended left there."""
        self._refusal = None
        self._is_spooling = True
        self._is_closed = False
        try:
            self._spool.open()
            found = adopt(self._directory)
        except OSError as error:
            logger.error("the spool cannot be used: %s", error)
            return
        lost = sum(len(orphaned.in_flight) for orphaned in found)
        damaged = sum(orphaned.damaged for orphaned in found)
        waiting = sum(orphaned.calls for orphaned in found)
        with self._lock:
            self._adopted = Adoption(found)
            self._spool.foreign_size = sum(orphaned.size for orphaned in found)
            # Ours only until the rows of those processes can be written (`booked`).
            self._counts.in_flight_lost += lost
            self._adopted_calls, self._left_behind = waiting, 0
            self._counts.accepted += waiting
            self._counts.damaged_lines += damaged
        if lost:
            logger.warning(
                "%d calls were under way when the previous process crashed; their records "
                "are incomplete or missing",
                lost,
            )
        if waiting:
            logger.info("%d calls are read back from the spool", waiting)

    def leave_adopted(self) -> None:
        """Leave what other processes left, and is not stored, to the next start: it accepts that.

        Only for calls in our own spool does our row of the ledger lead to them.
        """
        with self._lock:
            self._counts.accepted -= self._adopted_calls
            self._left_behind += self._adopted_calls
            self._adopted_calls = 0

    def close(self) -> None:
        """Leave what is not stored to the next start. Calls that still end go to the spool."""
        self.leave_adopted()
        with self._lock:
            self._is_closed = True
            # Only what the spool would not take is lost.
            self._counts.dropped += sum(unit.entry is None for unit in self._queue)
            self._queue.clear()
            self._queue_calls = self._queue_bytes = 0
            self._backlog, self._backlog_at = 0, None
            self._spool.close()
            self._adopted.release()
            left = self._counts.waiting + self._left_behind
        if left:
            logger.warning("%d calls wait in the spool for the next start", left)

    def is_behind(self) -> bool:
        """Calls wait in the spool."""
        return self._backlog > 0

    def is_empty(self) -> bool:
        """Everything taken in is stored or given up."""
        with self._lock:
            is_reporting = self._is_reserved or any(map(_is_awaited, self._taken))
            return not (is_reporting or self._has_work() or self._counts.waiting)

    def waiting(self) -> int:
        """Calls that are not stored yet, reports that wait for their turn included."""
        with self._lock:
            return self._counts.waiting + self._report_calls

    def queued(self) -> tuple[int, int]:
        """Calls and bytes that wait in memory."""
        with self._lock:
            return self._queue_calls + self._report_calls, self._queue_bytes + self._report_bytes

    def counts(self, after: Sequence[Outcome] = ()) -> LedgerCounts:
        """The numbers of this moment, or what they will be with these outcomes."""
        with self._lock:
            return counted(self._counts, after, spool_bytes=self._spool_bytes())

    def copied(self) -> tuple[Counts, int]:
        """The numbers of this moment, for who counts on elsewhere, and the bytes of the spool."""
        with self._lock:
            return replace(self._counts), self._spool_bytes()

    def doubt(self, units: Sequence[Unit], *, stored: int, bare: int) -> None:
        """The writer process ended with these under way, of which it had stored so many more than
        it said, so many without their texts."""
        for unit in units:
            unit.is_in_doubt = True
        with self._lock:
            self._counts.unheard = min(stored, sum(len(unit.captures) for unit in units))
            self._counts.bare += bare

    def _spool_bytes(self) -> int:
        return self._spool.size + self._spool.foreign_size


def _concerned(units: Sequence[Unit], concerns: Callable[[Capture], bool]) -> list[Unit]:
    return [
        unit
        for unit in units
        if not unit.is_settled and unit.answers is None and any(map(concerns, unit.captures))
    ]


def _is_awaited(unit: Unit) -> bool:
    """A report that is under way. Until it ends it is in no count: it is accepted only then."""
    return unit.answers is not None and not unit.answers.done()


def _after(entry: Entry) -> Entry:
    """The place behind a line."""
    return Entry(entry.seq, entry.segment, entry.offset + entry.size, 0, "")
