"""The job that exports: what waits in the outbox goes to its receiver, oldest first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Final

from helmdash import __version__
from helmdash.core.telemetry.judged import JudgedSpan, judged_span
from helmdash.operations.exporting import outbox
from helmdash.operations.exporting.environment import follow_environment
from helmdash.operations.exporting.outbox import Waiting
from helmdash.operations.exporting.receivers import Target, due_targets
from helmdash.operations.jobs.kinds import EXPORT, WORDS
from helmdash.operations.jobs.leases import Done
from helmdash.operations.jobs.running import JobKind, JobThread, Run
from helmdash.operations.recorder import recorder
from helmdash.queries.exporting import judged_calls
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import UpstreamFailed

if TYPE_CHECKING:
    from helmdash.upstream.services.trace_export import Sent

_has_followed = False

# Spans in one request: about 1 MB before it is packed; receivers take 4 and more.
_AT_ONCE: Final = 500
# So many calls refused one by one, and none taken: it is not the calls.
_ALL_REFUSED: Final = 20


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
    exported = 0
    outbox.give_up_old(now=run.now)
    with asyncio.Runner() as runner:
        client = runner.run(_client())
        try:
            for target in due_targets(run.now):
                exported += _empty(target, run, runner, client)
        finally:
            runner.run(client.aclose())
    return Done(told=f"exported {exported} calls", due_at=None)


def _empty(target: Target, run: Run, runner: asyncio.Runner, client: UpstreamClient) -> int:
    """Send what waits for one exporter, until all is gone or it takes no more now."""
    exported = 0
    while taken := outbox.take(target.id, most=_AT_ONCE):
        spans = _spans(taken)
        try:
            found = _deliver(_sender(target, runner, client), spans, go_on=run.go_on)
        except (UpstreamFailed, ValueError) as error:
            _fail(target, str(error), run.now)
            break
        if found.later is not None:
            _fail(target, found.later.problem, run.now, retry_after_s=found.later.retry_after_s)
            break
        outbox.settle(
            target.id,
            taken,
            exported=len(spans) - found.refused,
            refused=found.refused,
            problem=found.words,
            now=run.now,
        )
        exported += len(spans) - found.refused
    return exported


@dataclass(slots=True)
class _Delivered:
    """What became of some spans. later: why they have to be sent again; None: they are settled."""

    refused: int = 0
    words: str = ""
    later: Sent | None = None


def _deliver(
    send: Callable[[Sequence[JudgedSpan]], Sent],
    spans: Sequence[JudgedSpan],
    *,
    go_on: Callable[[], None],
) -> _Delivered:
    """Send spans; what is refused for good or for its size is halved until the one is found that
    is not taken. A receiver that takes none of many is one that is set up wrongly, and loses none.
    """
    found, taken = _Delivered(), 0
    waiting = [spans] if spans else []  # none where all have been erased since
    while waiting:
        go_on()
        some = waiting.pop()
        sent = send(some)
        if sent.is_refused and len(some) > 1:
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
        elif sent.is_refused:
            found.refused, found.words = found.refused + 1, sent.problem
            if not taken and found.refused >= _ALL_REFUSED:
                found.later = sent
                break
        elif sent.problem:
            found.later = sent
            break
        else:
            rejected = min(sent.rejected, len(some))
            found.refused += rejected
            taken += len(some) - rejected
    return found


def _sender(
    target: Target, runner: asyncio.Runner, client: UpstreamClient
) -> Callable[[Sequence[JudgedSpan]], Sent]:
    """Raises ValueError for headers that are none; the function raises UpstreamFailed."""
    # The generated classes of OTLP are loaded where somebody exports, and not by every server.
    from helmdash.upstream.services.trace_export import Receiver, send_spans

    receiver = Receiver(
        url=target.url, headers=target.headers(), allow_private=target.allow_private
    )
    return lambda spans: runner.run(send_spans(client, receiver, spans, version=__version__))


def _fail(
    target: Target, problem: str, now: datetime, *, retry_after_s: float | None = None
) -> None:
    outbox.note_failure(
        target.id, problem, failures=target.failures, now=now, retry_after_s=retry_after_s
    )


def _spans(taken: tuple[Waiting, ...]) -> list[JudgedSpan]:
    """Of a call that waits twice, since another door has completed it meanwhile, one."""
    spans: list[JudgedSpan] = []
    seen: set[tuple[int, object]] = set()
    for each in taken:
        fresh = [place for place in each.places if (each.project_id, place) not in seen]
        seen.update((each.project_id, place) for place in fresh)
        spans += map(judged_span, judged_calls(project_id=each.project_id, places=fresh))
    return spans


def _is_wanted(now: datetime) -> bool:
    """Whether calls wait. The first time, the exporter of the environment is looked after, as `up`
    has done: who is served without it needs no database to start."""
    global _has_followed
    if not _has_followed:
        follow_environment()
        _has_followed = True
    return outbox.is_any_due(now)


async def _client() -> UpstreamClient:
    """Made on the loop that it works on."""
    return UpstreamClient()


KIND: Final = JobKind(
    name=EXPORT,
    words=WORDS[EXPORT],
    run=_export,
    first_due=lambda now: None,
    is_wanted=_is_wanted,
)
