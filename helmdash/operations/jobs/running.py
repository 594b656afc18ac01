"""The threads of a server process that look for jobs and do them.

A process that is asked to stop gives its job back between two steps; one that is killed, or cut off
from the database, loses it when its lease ends, and another goes on.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from helmdash.operations.database.clock import clock
from helmdash.operations.database.sqlite_file import thread_connection, writes_seen
from helmdash.operations.jobs import leases
from helmdash.operations.jobs.leases import Done, LeaseLost, Progress, Seen, Turn
from helmdash.operations.recorder.group_commit import is_unavailable

logger = logging.getLogger(__name__)

# How often a process looks: as long as a figure may wait to be added, and two small queries.
LOOK_SECONDS = 2.0
# SQLite says for nothing whether anybody has written. Where nobody has for longer than the first
# two waits before a new try take (5 and 10 s), only what the clock makes due can be new: what waits
# for longer may wait some seconds more.
_CALM_AFTER_SECONDS = 10.0
_LONGEST_CALM_SECONDS = 5.0
_RENEW_SECONDS = leases.LEASE.total_seconds() / 3
# After so long without a renewal a run asks before its next step: its host was frozen, or the
# database away, and the lease may have ended.
_SURE_SECONDS = 2 * _RENEW_SECONDS
# How often a run says how far it is, and hears whether it is to end: two small statements.
_NOTE_SECONDS = 1.0
# How often somebody who waits for a job looks whether its holder lives.
_SIGN_SECONDS = 0.5


class _Stopping(Exception):
    """The server stops: the job goes on elsewhere."""


class _Cancelled(Exception):
    """Somebody asked for it: the job ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a job. now: the database's clock at its start; cursor: what the last one left."""

    now: datetime
    cursor: str
    go_on: Callable[[], None]
    """To be called between steps: raises where the run has to end here."""
    tell: Callable[[Progress], None]
    """The same, for a run that takes long: people see how far it is, and may end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """A job. words: what it does, for people. It has to bear being done twice, or in part."""

    name: str
    words: str
    run: Callable[[Run], Done]
    first_due: Callable[[datetime], datetime | None]
    """When it is due in a new database, by its clock."""
    is_wanted: Callable[[datetime], bool] | None = None
    """For one that is done when there is something to do: whether there is."""


class JobThread:
    """Does such jobs, one after the other, for as long as the server runs."""

    def __init__(self, kinds: Sequence[JobKind], *, holder: str) -> None:
        self._kinds = kinds
        self._holder = holder
        self._end = threading.Event()
        name = f"jobs-{kinds[0].name}"
        # A daemon: a server that stops does not wait for a statement that takes long.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End after the step that is under way; blocks for so long at most."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def look_once(self) -> bool:
        """Do what is due and free, on this thread's connection; whether there was anything.

        Raises what the database raises when it is unavailable; what a job raises is noted in its
        row.
        """
        seen = _look(self._kinds)
        has_found = False
        for kind in self._kinds:
            each = seen[kind.name]
            if self._end.is_set() or not each.is_free:
                continue
            if each.is_due or _is_wanted(kind, each):
                has_found = True
                turn = leases.take(each, holder=self._holder)
                if turn is not None:
                    self._carry_out(kind, turn, each)
        return has_found

    def _run(self) -> None:
        calm = _Calm()
        while not self._end.wait(LOOK_SECONDS):
            try:
                with thread_connection():
                    if not calm.goes_on():
                        calm.note(self.look_once())
            except Exception as error:
                # Who needs the database says that it is away; a lease that is held runs out.
                level = logging.DEBUG if is_unavailable(error) else logging.ERROR
                logger.log(level, "the jobs could not be looked at", exc_info=True)
        connections.close_all()

    def _carry_out(self, kind: JobKind, turn: Turn, seen: Seen) -> None:
        try:
            _carry_out(kind, turn, seen, stopping=self._end)
        except LeaseLost:
            logger.warning("the job %s was taken over by another process", kind.name)
        except Exception:
            logger.exception("the job %s failed", kind.name)


class _Calm:
    """Nobody has written for a while, and the last look found nothing to do."""

    def __init__(self) -> None:
        self._writes: tuple[int, int] | None = None
        self._since = self._until = 0.0

    def goes_on(self) -> bool:
        """It does, and has not for so long that the clock may have made something due. Asked before
        each look, on the connection of the look."""
        before, self._writes = self._writes, writes_seen()
        moment = time.monotonic()
        if self._writes is None or self._writes != before:
            self._since = moment
        return moment - self._since > _CALM_AFTER_SECONDS and moment < self._until

    def note(self, has_found: bool) -> None:
        """How a look ended. A thread does not see its own writes."""
        moment = time.monotonic()
        if has_found:
            self._since = moment
        self._until = moment + _LONGEST_CALM_SECONDS


def _is_wanted(kind: JobKind, seen: Seen) -> bool:
    """There is something to do; what failed waits for its time all the same.

    A job that cannot tell is done: its fault is told in its row, and keeps no other from its turn.
    Raises what the database raises when it is unavailable.
    """
    if kind.is_wanted is None or seen.has_failed:
        return False
    try:
        return kind.is_wanted(seen.now)
    except Exception as error:
        if is_unavailable(error):
            raise
        return True


def run_now(
    kind: JobKind, *, holder: str, show: Callable[[str], None] = lambda words: None
) -> bool:
    """Do a job here and now, due or not. False: another process is at it, and nothing is done.

    Waits for a sign of life of who holds it, 30 s at most, for that one may have been killed. show:
    hears so, and after each step what it is at. Raises what the job raises, noted in its row;
    KeyboardInterrupt cancels it.
    """
    seen = _when_free(kind, show)
    turn = leases.take(seen, holder=holder) if seen is not None else None
    if seen is None or turn is None:
        return False
    _carry_out(kind, turn, seen, stopping=threading.Event(), show=show)
    return True


def _when_free(kind: JobKind, show: Callable[[str], None]) -> Seen | None:
    """The row of a job once nobody holds it; None: its holder lives, for it renewed its lease.

    Whether a process lives cannot be asked across hosts and containers; what it writes can be seen
    from all of them.
    """
    first = seen = _look((kind,))[kind.name]
    while not seen.is_free:
        if (seen.turns, seen.until) != (first.turns, first.until):
            return None
        show("another process has it; waiting for a sign of life, half a minute at most")
        time.sleep(_SIGN_SECONDS)
        seen = _look((kind,))[kind.name]
    return seen


def _look(kinds: Sequence[JobKind]) -> Mapping[str, Seen]:
    """The rows of the jobs, made where they are missing."""
    found = leases.look()
    missing = [kind for kind in kinds if kind.name not in found]
    if not missing:
        return found
    now = clock()
    leases.make_rows({kind.name: kind.first_due(now) for kind in missing})
    return leases.look()


def _carry_out(
    kind: JobKind,
    turn: Turn,
    seen: Seen,
    *,
    stopping: threading.Event,
    show: Callable[[str], None] = lambda words: None,
) -> None:
    """Run a job that was taken, and say in its row how that went.

    Raises LeaseLost, and what the job raises.
    """
    with _renewing(turn) as lease:

        def go_on() -> None:
            lease.require()
            if stopping.is_set():
                raise _Stopping

        noted = -_NOTE_SECONDS

        def tell(progress: Progress) -> None:
            nonlocal noted
            show(progress.step)
            is_late = time.monotonic() - noted >= _NOTE_SECONDS
            if is_late or progress.cursor is not None:
                noted = time.monotonic()
                if leases.note(turn, progress):
                    raise _Cancelled
            go_on()

        try:
            done = kind.run(Run(now=seen.now, cursor=seen.cursor, go_on=go_on, tell=tell))
        except LeaseLost:
            raise
        except _Stopping:
            leases.interrupt(turn)
            return
        except (_Cancelled, KeyboardInterrupt) as error:
            leases.cancel(turn, due_at=kind.first_due(seen.now))
            if isinstance(error, KeyboardInterrupt):
                raise
            return
        except Exception as error:
            leases.fail(turn, told=type(error).__name__)
            raise
    leases.end(turn, done)


class _Lease:
    """What a run knows of its lease."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._is_lost = False
        self._renewed = time.monotonic()

    def renew(self) -> None:
        """Hold it for longer. Raises LeaseLost."""
        asked = time.monotonic()
        try:
            leases.renew(self._turn)
        except LeaseLost:
            self._is_lost = True
            raise
        self._renewed = asked

    def require(self) -> None:
        """Raises LeaseLost where another process has the job."""
        if self._is_lost:
            raise LeaseLost
        if time.monotonic() - self._renewed > _SURE_SECONDS:
            self.renew()


@contextlib.contextmanager
def _renewing(turn: Turn) -> Iterator[_Lease]:
    """Renew the lease while the block runs."""
    is_over, lease = threading.Event(), _Lease(turn)

    def renew() -> None:
        while not is_over.wait(_RENEW_SECONDS):
            try:
                with thread_connection():
                    lease.renew()
            except LeaseLost:
                break
            except Exception:
                logger.debug("the lease of %s could not be renewed", turn.name, exc_info=True)
        connections.close_all()

    thread = threading.Thread(target=renew, name=f"lease-{turn.name}", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        is_over.set()
        thread.join()
