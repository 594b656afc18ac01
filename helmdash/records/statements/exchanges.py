"""Several statements to PostgreSQL in one message, and their answers in one.

psycopg's own pipeline begins a transaction in a round trip of its own, and a fault of one statement
shows while another is sent. Here libpq's pipeline mode takes all of them, at once or one after the
other, and the first fault is raised when all answers are there (ADR 73).
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

# For so long PostgreSQL keeps the plans of what is prepared. It would keep one until the table is
# analyzed, and one for a table of a single page is to read all of it: that of some four thousand
# calls by then. To plan everything anew takes three milliseconds.
PLANS_SECONDS = 2.0
# More than there are shapes of rows; values of other types make further ones.
_MOST_KEPT = 200
# What a table's other columns, or somebody's DEALLOCATE, make of what was prepared before:
# feature_not_supported ("cached plan must not change result type"), invalid_sql_statement_name.
# Whoever asks once more has it prepared anew.
STALE = frozenset({"0A000", "26000"})
_FAULTS = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE, ExecStatus.PIPELINE_ABORTED)


class Statement(NamedTuple):
    """With `%s` for each value. is_prepared: the connection keeps it, and its plan for a while."""

    text: str
    values: Sequence[Any] = ()
    is_prepared: bool = False


BEGIN = Statement("BEGIN")
# Left to itself PostgreSQL plans anew each time what is asked by an array, for it takes any for
# longer than ours are: a tenth of its work for one call (1.29 -> 1.18 ms). All that is prepared is
# worded so that one plan serves (records.statements.direct). What is not has no parameters of the
# server's.
_PLAN_ONCE = Statement("SET plan_cache_mode = force_generic_plan")
_PLAN_ANEW = Statement("DISCARD PLANS")
_FORGET = Statement("DEALLOCATE ALL")


@dataclass(frozen=True, slots=True)
class Answer:
    """To one statement."""

    rows: list[Any]
    _told: PGresult

    @property
    def tag(self) -> str:
        """The words by which the server says that it is done."""
        return (self._told.command_status or b"").decode()

    @property
    def changed(self) -> int:
        """So many rows; or found."""
        return self._told.command_tuples or 0


@dataclass(slots=True)
class _Kept:
    """What a connection has prepared: names by statement and the types of its values."""

    names: dict[tuple[str, tuple[int, ...]], bytes] = field(default_factory=dict)
    given: int = 0
    planned_at: float = field(default_factory=time.monotonic)


_kept: WeakKeyDictionary[psycopg.Connection[Any], _Kept] = WeakKeyDictionary()


def exchange(driver: psycopg.Connection[Any], statements: Sequence[Statement]) -> list[Answer]:
    """Carry out statements in one round trip; gives their answers.

    A transaction is begun with them where the driver would begin one. Raises psycopg.Error, that of
    the first which failed: those behind it were not carried out.
    """
    whole = Exchange(driver)
    try:
        return whole.end(statements)
    finally:
        whole.break_off()


def _sent_first(driver: psycopg.Connection[Any], kept: _Kept) -> Generator[Statement]:
    if not driver.autocommit and driver.pgconn.transaction_status == TransactionStatus.IDLE:
        if (driver.isolation_level, driver.read_only, driver.deferrable) == (None, None, None):
            yield BEGIN
        else:
            driver.execute("SELECT 1")  # it says how the transaction is to be
    if len(kept.names) > _MOST_KEPT:
        kept.names.clear()
        yield _FORGET
    is_old = time.monotonic() - kept.planned_at > PLANS_SECONDS
    if is_old or not kept.names:
        # Said again, since a transaction that is rolled back takes it back.
        yield _PLAN_ONCE
    if is_old:
        kept.planned_at = time.monotonic()
        yield _PLAN_ANEW


class Exchange:
    """One message and its answers. The message may be sent piece by piece: the server begins with
    what it has while the rest is made.

    From `send` to `end` or `break_off` the connection is this one's alone.
    """

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self._driver = driver
        self._kept = _kept.setdefault(driver, _Kept())
        self._adapt = Transformer(driver)
        # Statements that are prepared by this message: not, where it fails.
        self._fresh: dict[tuple[str, tuple[int, ...]], bytes] = {}
        # Of each result that is to come: whether it is the answer to a statement of the caller's.
        self._is_answer: list[bool] = []
        self._is_open = False

    def send(self, statements: Sequence[Statement]) -> None:
        """Send some, and wait for nothing. Raises psycopg.Error of a value that cannot be given:
        then none of these are sent; and where the connection is lost."""
        self._put(statements)
        with self._driver.lock:
            # What the connection does not take now goes with the next.
            self._driver.pgconn.flush()

    def end(self, last: Sequence[Statement] = ()) -> list[Answer]:
        """Send what comes last; gives the answers to all. Raises as `exchange` does."""
        self._put(last)
        results = self._received()
        for result in results:
            if result.status in _FAULTS:
                error = error_from_result(result, encoding=self._driver.info.encoding)
                if error.sqlstate in STALE:
                    self._kept.names.clear()
                raise error
        self._kept.names |= self._fresh
        told = zip(results, self._is_answer, strict=True)
        return [self._read(result) for result, is_answer in told if is_answer]

    def break_off(self) -> None:
        """Send nothing more, and wait for the end of what was sent, whatever it is: the transaction
        is where it brought it. Does nothing where all is sent, or nothing."""
        if self._is_open:
            with suppress(psycopg.Error):
                self._received()

    def _put(self, statements: Sequence[Statement]) -> None:
        """Hand them to the driver, with what goes first."""
        first = [] if self._is_open else [*_sent_first(self._driver, self._kept)]
        # All values first: one that cannot be given leaves nothing half sent.
        bound = [(each, *self._bound(each.values)) for each in (*first, *statements)]
        pgconn = self._driver.pgconn
        with self._driver.lock:
            if not self._is_open:
                if pgconn.pipeline_status != PipelineStatus.OFF:
                    raise psycopg.OperationalError("the connection is another message's")
                # Before: whatever stops us in between, `break_off` is to leave it.
                self._is_open = True
                pgconn.enter_pipeline_mode()
            for place, each in enumerate(bound):
                is_own = place >= len(first)
                self._is_answer += [is_own and told for told in self._send(pgconn, *each)]

    def _received(self) -> list[PGresult]:
        """All results, once the message is ended and sent."""
        pgconn = self._driver.pgconn
        with self._driver.lock:
            try:
                if pgconn.status != ConnStatus.OK:
                    raise psycopg.OperationalError(pgconn.get_error_message())
                pgconn.pipeline_sync()
                return self._driver.wait(_received(pgconn))
            finally:
                self._leave(pgconn)

    def _bound(self, values: Sequence[Any]) -> tuple[Any, tuple[int, ...], Any]:
        """The values as they are sent, their types and formats."""
        if not values:
            return None, (), None
        given = self._adapt.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return given, self._adapt.types or (), self._adapt.formats

    def _send(
        self,
        pgconn: PGconn,
        statement: Statement,
        values: Any,
        types: tuple[int, ...],
        formats: Any,
    ) -> list[bool]:
        """Sends one; gives for each result that it leads to whether it is the statement's own."""
        if not statement.is_prepared:
            pgconn.send_query_params(_numbered(statement.text), values, types, formats)
            return [True]
        key = (statement.text, types)
        name = self._kept.names.get(key) or self._fresh.get(key)
        is_new = name is None
        if name is None:
            self._kept.given += 1
            name = self._fresh[key] = b"hd_%d" % self._kept.given
            pgconn.send_prepare(name, _numbered(statement.text), types)
        pgconn.send_query_prepared(name, values, formats)
        return [False, True] if is_new else [True]

    def _leave(self, pgconn: PGconn) -> None:
        """Out of pipeline mode. What was broken off in the middle is no connection any more."""
        self._is_open = False
        if pgconn.status != ConnStatus.OK or pgconn.pipeline_status == PipelineStatus.OFF:
            return
        try:
            pgconn.exit_pipeline_mode()
        except psycopg.OperationalError:
            self._driver.close()

    def _read(self, result: PGresult) -> Answer:
        rows: list[Any] = []
        if result.status == ExecStatus.TUPLES_OK:
            self._adapt.set_pgresult(result)
            rows = self._adapt.load_rows(0, result.ntuples, tuple)
        return Answer(rows, result)


def _received(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """All results of a message, once it is sent. For `Connection.wait`, which lets other threads
    run meanwhile."""
    results: list[PGresult] = []
    is_between = True
    wait = Wait.RW if pgconn.flush() else Wait.R
    while True:
        ready = yield wait
        if ready & Ready.W:
            wait = Wait.RW if pgconn.flush() else Wait.R
        if not ready & Ready.R:
            continue
        pgconn.consume_input()
        while not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                if is_between:
                    break
                is_between = True
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return results
            else:
                is_between = False
                results.append(result)


# As few as there are shapes of rows.
@cache
def _numbered(statement: str) -> bytes:
    """With `$1` for the first `%s`, as the server wants it."""
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        count += 1
        return f"${count}"

    return re.sub("%[s%]", number, statement).encode()
