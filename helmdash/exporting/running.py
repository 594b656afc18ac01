"""The job that exports: what waits in the outbox goes to its receiver, oldest first."""

from __future__ import annotations

import asyncio
import logging
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
    from helmdash.upstream.trace_export import Receiver, Sent

log = logging.getLogger(__name__)
_has_followed = False

# Spans in one request: about 1 MB before it is packed; receivers take 4 and more.
_AT_ONCE: Final = 500


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
    """Send what waits for one exporter, until all is gone or it does not take it."""
    # The generated classes of OTLP are loaded where somebody exports, and not by every server.
    from helmdash.upstream.trace_export import Receiver

    exported, most = 0, _AT_ONCE
    while taken := outbox.take(target.id, most=most):
        run.go_on()
        spans = _spans(taken)
        try:
            receiver = Receiver(
                url=target.url, headers=target.headers(), allow_private=target.allow_private
            )
            sent = _send(runner, client, receiver, spans)
        except (UpstreamFailed, ValueError) as error:
            _fail(target, str(error), run.now)
            break
        except Exception:
            # One that cannot be served must not hold up the others.
            log.exception("the exporter %s could not be served", target.id)
            _fail(target, "HelmDash failed; its log says how.", run.now)
            break
        if sent.is_too_large and len(taken) > 1:
            most = max(sum(len(each.places) for each in taken) // 2, 1)
            continue
        is_lost = sent.is_final or sent.is_too_large
        if sent.problem and not is_lost:
            _fail(target, sent.problem, run.now, retry_after_s=sent.retry_after_s)
            break
        if is_lost and len(taken) > 1:
            most = 1  # to find the one that is not taken
            continue
        refused = len(spans) if is_lost else min(sent.rejected, len(spans))
        outbox.settle(
            target.id,
            taken,
            exported=len(spans) - refused,
            refused=refused,
            problem=sent.problem,
            now=run.now,
        )
        exported += len(spans) - refused
    return exported


def _send(
    runner: asyncio.Runner, client: UpstreamClient, receiver: Receiver, spans: list[JudgedSpan]
) -> Sent:
    from helmdash.upstream.trace_export import Sent, send_spans

    if not spans:
        return Sent()  # all of them have been erased since
    return runner.run(send_spans(client, receiver, spans, version=__version__))


def _fail(
    target: Target, problem: str, now: datetime, *, retry_after_s: float | None = None
) -> None:
    outbox.note_failure(
        target.id, problem, failures=target.failures, now=now, retry_after_s=retry_after_s
    )


def _spans(taken: tuple[Waiting, ...]) -> list[JudgedSpan]:
    return [
        judged_span(call)
        for each in taken
        for call in judged_calls(project_id=each.project_id, places=each.places)
    ]


def _is_wanted(now: datetime) -> bool:
    """Whether calls wait. The first time, the exporter of the environment is looked after: not
    when the server starts, which needs no database for that."""
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
