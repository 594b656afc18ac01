"""Whether the replica may be read from: it has all that the primary has committed by now.

Asked for each request that reads (`has_all`), so that nobody misses what they, or anybody else,
have just written, by whichever process on whichever host. A replica that is a moment behind is
waited for; one that is away, silent, too far behind, or no replica of this database is not read
from, and the primary answers instead.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from helmdash import conf
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.database.timeouts import connection_beside_pool
from helmdash.records.replica import REPLICA_DB_ALIAS, Reading, is_on_replica, reading_elsewhere

__all__ = [
    "Reading",
    "Replica",
    "ReplicaState",
    "is_on_replica",
    "is_responding",
    "reading_elsewhere",
    "replica",
]

log = logging.getLogger(__name__)

# Streaming takes a millisecond or two within a data centre, and a page some tens.
_WAIT_S = 0.1
_PAUSE_S = 0.002
# After one wait that was in vain nobody else waits for so long.
_LEAVE_ALONE_S = 1.0
# Committed is what is on the primary's disk; where it answers before that, what is written at all.
_PRIMARY_POSITION = (
    "SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN"
    " pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint,"
    " ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int"
)
# Its timeline is what it received last, where the role may know, else what is on its disk: that is
# behind until its next restart point, minutes after another server has taken over.
_REPLICA_POSITION = (
    "SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint,"
    " greatest((SELECT received_tli FROM pg_stat_wal_receiver), checkpoint.timeline_id,"
    " recovery.min_recovery_end_timeline)"
    " FROM pg_control_checkpoint() AS checkpoint, pg_control_recovery() AS recovery"
)
# The cluster that a server is of, which its replicas share, and which of its databases.
_IDENTITY = "SELECT system_identifier, current_database() FROM pg_control_system()"
# It may be further than the primary, with rows that are none there.
_OTHER_WAY = "it does not follow the server that took over"
_LATE = f"it is more than {_WAIT_S:g} s behind, or does not respond"


class _Unusable(Exception):
    """Why the replica is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """How the replica is, as this process saw it last, and which requests it served.

    problem: why it is not read from; "" where it is. from_replica, from_primary: requests that
    read what was recorded, from the one or, for they had to, from the other. failed: of the first,
    those that failed there and were done again.
    """

    problem: str
    from_replica: int
    from_primary: int
    failed: int


class Replica:
    """Asks the replica, in a thread and on a connection of its own: one that does not respond keeps
    nobody waiting."""

    def __init__(self) -> None:
        self._told = threading.Condition()
        self._thread: threading.Thread | None = None
        # Questions are numbered; an answer holds for those that were asked before it was sought.
        self._asked = self._answered = 0
        self._answer = (-1, 0, "")
        self._problem = self._logged = ""
        self._left_alone_until = 0.0
        self._from_replica = self._from_primary = self._failed = 0

    def has_all(self, seconds: float = _WAIT_S) -> bool:
        """Whether it has all that the primary has now. Waits for it, but for so long at most."""
        found = time.monotonic() >= self._left_alone_until and self._catches_up(seconds)
        with self._told:
            self._from_replica += found
            self._from_primary += not found
        return found

    def state(self) -> ReplicaState:
        """How it was when somebody asked last."""
        with self._told:
            return ReplicaState(
                problem=self._problem,
                from_replica=self._from_replica,
                from_primary=self._from_primary,
                failed=self._failed,
            )

    def responds(self) -> bool:
        """Whether it answers at all, within _WAIT_S."""
        return self._ask(time.monotonic() + _WAIT_S) is not None

    def note_failure(self) -> None:
        """A request failed there, and is done again on the primary."""
        with self._told:
            self._failed += 1
        self._note("a request failed there")

    def _catches_up(self, seconds: float) -> bool:
        try:
            wanted, timeline = _row(connection, _PRIMARY_POSITION)
        except (DatabaseError, InterfaceError):
            # Who asks the primary next finds out why.
            return False
        until = time.monotonic() + seconds
        problem = _LATE
        while (found := self._ask(until)) is not None:
            position, followed, problem = found
            if not problem and followed != timeline:
                problem = _OTHER_WAY
            if problem or position >= wanted:
                break
            problem = _LATE
            time.sleep(_PAUSE_S)
        self._note(problem)
        return not problem

    def _ask(self, until: float) -> tuple[int, int, str] | None:
        """How far it is and on which timeline, or what is wrong; None: it did not say in time."""
        with self._told:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="replica", daemon=True)
                self._thread.start()
            self._asked += 1
            number = self._asked
            self._told.notify_all()
            seconds = until - time.monotonic()
            if not self._told.wait_for(lambda: self._answered >= number, max(seconds, 0)):
                return None
            return self._answer

    def _note(self, problem: str) -> None:
        with self._told:
            self._problem = problem
            self._left_alone_until = time.monotonic() + _LEAVE_ALONE_S if problem else 0.0
            # To be late comes and goes with the load; whoever wants to know reads the metrics.
            if problem in (self._logged, _LATE):
                return
            self._logged = problem
        if problem:
            log.warning("the replica is not read from: %s; the primary answers", problem)
        else:
            log.warning("the replica is read from again")

    def _run(self) -> None:
        own: BaseDatabaseWrapper | None = None
        while True:
            with self._told:
                self._told.wait_for(lambda: self._asked > self._answered)
                number = self._asked
            try:
                own = own or _connected()
                answer = (*_position(own), "")
            except Exception as error:
                answer = (-1, 0, _words(error))
                _close(own)
                own = None
            with self._told:
                self._answered, self._answer = number, answer
                self._told.notify_all()


def _close(own: BaseDatabaseWrapper | None) -> None:
    if own is not None:
        own.close()


def _connected() -> BaseDatabaseWrapper:
    """A connection to it, of the replica of this database. Raises _Unusable."""
    with thread_connection():
        identity = _row(connection, _IDENTITY)
    own = connection_beside_pool(REPLICA_DB_ALIAS)
    try:
        if _row(own, _IDENTITY) != identity:
            raise _Unusable("it is of another database")
    except BaseException:
        own.close()
        raise
    return own


def _position(own: BaseDatabaseWrapper) -> tuple[int, int]:
    """Up to where it has the primary's log, and of which timeline. Raises _Unusable."""
    is_replica, position, timeline = _row(own, _REPLICA_POSITION)
    if not is_replica:
        raise _Unusable("it takes writes of its own")
    return -1 if position is None else int(position), int(timeline)


def _row(of: BaseDatabaseWrapper, statement: str) -> tuple[Any, ...]:
    with of.cursor() as cursor:
        cursor.execute(statement)
        found: tuple[Any, ...] = cursor.fetchone()
        return found


def _words(error: Exception) -> str:
    """For people; without what the driver says, which may name hosts and users."""
    if isinstance(error, _Unusable):
        return str(error)
    log.debug("the replica cannot be asked", exc_info=error)
    if isinstance(error, OperationalError | InterfaceError):
        return "it cannot be reached"
    return f"it cannot be asked: {type(error.__cause__ or error).__name__}"


@cache
def replica() -> Replica | None:
    """This process's; None where no replica is configured."""
    return Replica() if conf.env().replica_url else None


def is_responding() -> bool:
    """Whether the replica answers at all; True where none is configured."""
    found = replica()
    return found is None or found.responds()
