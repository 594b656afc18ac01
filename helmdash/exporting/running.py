"""The job that exports: what waits in the outbox goes to its receivers, oldest first.

Receivers are sent to side by side, so that none waits behind a slow one. Everything but the sending
is done on the thread of the job.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from helmdash import __version__
from helmdash.exporting.batches import ExportBatch, batch_of
from helmdash.operations.database.clock import clock
from helmdash.operations.exporting import outbox
from helmdash.operations.exporting.environment import follow_environment
from helmdash.operations.exporting.receivers import Target, due_targets
from helmdash.operations.jobs.kinds import EXPORT, WORDS
from helmdash.operations.jobs.leases import Done
from helmdash.operations.jobs.running import JobKind, JobThread, Run
from helmdash.operations.recorder import recorder
from helmdash.upstream.client import opened_beside
from helmdash.upstream.failures import UpstreamFailed

if TYPE_CHECKING:
    from datetime import datetime

    from helmdash.core.telemetry.judged import JudgedSpan
    from helmdash.upstream.services.trace_export import Sent

    Begin = Callable[[Target, Sequence[JudgedSpan]], Future[Sent]]

_has_followed = False
# How many calls each receiver, by its exporter's number, is given at once, as it bore them lately.
_at_once: dict[int, int] = {}

# Spans in one request: about 1 MB before it is packed; receivers take 4 and more.
_AT_ONCE: Final = 500
# Of one that failed lately half as many for each time, but so many: it may be too slow for more, or
# asked too often. Enough to tell one that refuses everything (batches.ALL_REFUSED).
_AT_LEAST: Final = 20
# Receivers that are sent to together; each has its spans in memory.
_MOST_UNDER_WAY: Final = 16
# How often a run looks for receivers that wait no longer, while others are under way.
_LOOK_SECONDS: Final = 2.0
# After so long a run begins nothing more, and the next one gives up what is too old by then.
_RUN_SECONDS: Final = 600.0
# A request in all: a receiver may answer a byte at a time.
_REQUEST_SECONDS: Final = 60.0
_NO_ANSWER: Final = f"no whole answer within {_REQUEST_SECONDS:.0f} s"


def start() -> None:
    """Start this process's thread: when the server starts, after its recorder."""
    _thread().start()


def stop(seconds: float) -> None:
    """Give back what this process holds; blocks for so long at most."""
    _thread().stop(seconds)
    _thread.cache_clear()


@cache
def _thread() -> JobThread:
    return JobThread((KIND,), holder=recorder().name)


def _export(run: Run) -> Done:
    outbox.give_up_old(now=run.now)
    with opened_beside("exports") as (client, loop):
        # The generated classes of OTLP are loaded where somebody exports, and not by every server.
        from helmdash.upstream.services.trace_export import Receiver, send_spans

        def begin(target: Target, spans: Sequence[JudgedSpan]) -> Future[Sent]:
            receiver = Receiver(
                url=target.url, headers=target.headers(), allow_private=target.allow_private
            )
            sending = asyncio.wait_for(
                send_spans(client, receiver, spans, version=__version__), _REQUEST_SECONDS
            )
            return asyncio.run_coroutine_threadsafe(sending, loop)

        exported = _Round(begin, run.go_on).empty(_RUN_SECONDS)
    return Done(told=f"exported {exported} calls", due_at=None)


class _Round:
    """One run: what is under way, and whose turn it is."""

    def __init__(self, begin: Begin, go_on: Callable[[], None]) -> None:
        self._begin_sending = begin
        self._go_on = go_on
        self._under_way: dict[Future[Sent], ExportBatch] = {}
        self._turns: Counter[int] = Counter()
        self._exported = 0

    def empty(self, seconds: float) -> int:
        """Send until nothing waits that may be sent now; how many calls were taken.

        seconds: after which nothing more is begun. Raises what `go_on` raises, once all that was
        under way is answered and noted.
        """
        until = time.monotonic() + seconds
        fault = _fault_of(self._begin)
        while self._under_way:
            done, _ = wait(self._under_way, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            fault = fault or _fault_of(self._go_on)
            for future in done:
                fault = _fault_of(partial(self._hear, future, is_last=fault is not None)) or fault
            if fault is None and time.monotonic() < until:
                fault = _fault_of(self._begin)
        if fault is not None:
            raise fault
        return self._exported

    def _begin(self) -> None:
        """Give the next calls to every receiver that has none under way, until there is no room;
        who had fewest turns is the first."""
        busy = {batch.target.id for batch in self._under_way.values()}
        free = [target for target in due_targets(clock()) if target.id not in busy]
        for target in sorted(free, key=lambda each: self._turns[each.id]):
            if len(self._under_way) >= _MOST_UNDER_WAY:
                return
            self._turns[target.id] += 1
            if taken := outbox.take(target.id, most=_most(target)):
                self._send(batch_of(target, taken))

    def _send(self, batch: ExportBatch) -> None:
        """The next request of a batch; where all is said, that is noted."""
        spans = batch.next()
        if not spans:
            self._settle(batch)
            return
        try:
            self._under_way[self._begin_sending(batch.target, spans)] = batch
        except ValueError as error:
            batch.fail(str(error))
            self._settle(batch)

    def _hear(self, future: Future[Sent], *, is_last: bool) -> None:
        """Note what came of a request. is_last: nothing more of its batch is sent by this run."""
        batch = self._under_way.pop(future)
        try:
            batch.hear(future.result())
        except (UpstreamFailed, ValueError, TimeoutError) as error:
            batch.fail(str(error) or _NO_ANSWER)
        if is_last:
            self._settle(batch)
        else:
            self._send(batch)

    def _settle(self, batch: ExportBatch) -> None:
        target, size, now = batch.target, _most(batch.target), clock()
        if not batch.is_as_before:
            outbox.settle(
                target.id,
                batch.taken,
                unanswered=batch.unanswered(),
                exported=batch.exported,
                refused=batch.refused,
                problem=batch.problem,
                now=now,
            )
            self._exported += batch.exported
        if not batch.failure:
            _at_once[target.id] = 2 * size
            return
        _at_once[target.id] = size // 2
        outbox.note_failure(
            target.id,
            batch.failure,
            failures=target.failures if batch.is_as_before else 0,
            now=now,
            retry_after_s=batch.retry_after_s,
        )


def _most(target: Target) -> int:
    """How many calls a receiver is given at once. A process that has not sent it any yet goes by
    how often it failed."""
    most = _at_once.get(target.id, _AT_ONCE >> min(target.failures, 16))
    return min(max(most, _AT_LEAST), _AT_ONCE)


def _fault_of(step: Callable[[], None]) -> Exception | None:
    """What a step raises, for those that others have to be done after."""
    try:
        step()
    except Exception as error:
        return error
    return None


def _is_wanted(now: datetime) -> bool:
    """Whether calls wait. The first time, the exporter of the environment is looked after, as `up`
    has done: who is served without it needs no database to start."""
    global _has_followed
    if not _has_followed:
        follow_environment()
        _has_followed = True
    return outbox.is_any_due(now)


KIND: Final = JobKind(
    name=EXPORT,
    words=WORDS[EXPORT],
    run=_export,
    first_due=lambda now: None,
    is_wanted=_is_wanted,
)
