"""Carrying one call through: send it, hand the reply on, record it.

The record is handed over by a plain function before the client's last byte leaves, and nothing here
waits for it (ADR 11): a client that has its whole reply has a record, and a database that is away
costs no client anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

from helmdash.core.budgets.refused_windows import refused_window
from helmdash.core.calls.capture import Capture
from helmdash.doors.asgi import Receive
from helmdash.gateway.caring import is_overflow
from helmdash.gateway.exchange import Exchange
from helmdash.gateway.jobs import Job
from helmdash.gateway.local_models import LocalModels
from helmdash.gateway.overflow_errors import is_json_body, normalise_overflow_error
from helmdash.gateway.responder import Header
from helmdash.gateway.watching import ClientWatch
from helmdash.heavy import end_turn
from helmdash.operations.recorder import Recorder
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.collecting import Collector
from helmdash.providers.wire import (
    Event,
    Object,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStarted,
    WireError,
)
from helmdash.upstream.client import UpstreamClient
from helmdash.upstream.failures import FailureKind, UpstreamFailed
from helmdash.upstream.opened import Opened

log = logging.getLogger(__name__)

# A whole reply larger than this is refused rather than held in memory.
MOST_REPLY_BYTES = 64 * 1024 * 1024
# An error page beyond this says nothing more.
_MOST_ERROR_BYTES = 1024 * 1024
# As much of a refusal as an attempt keeps.
_ATTEMPT_CHARS = 500
_STOPPED = WireError(
    message="HelmDash was stopped during the call.",
    code="gateway_stopped",
    type="api_error",
    status=503,
    retry_after_s=1.0,
)
_CONTENT = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallStarted)


class Carrier:
    """Carries calls to upstreams and back."""

    def __init__(self, client: UpstreamClient, recorder: Recorder, local: LocalModels) -> None:
        self._client = client
        self._recorder = recorder
        self._local = local

    async def carry(self, job: Job, *, body: bytes, parsed: Object, receive: Receive) -> None:
        """Send the request of a job and answer the client, whatever happens.

        Raises Refusal when the provider's format cannot say what the client wants.
        """
        exchange = job.exchange
        http_request = job.write_request(body, parsed)
        project = exchange.key_context.caller.project
        self._recorder.begin(exchange.call_id, project.id)
        watch = ClientWatch(receive)
        try:
            await self._run(job, http_request, watch)
        except asyncio.CancelledError:
            _uncancel()
            if watch.has_left:
                exchange.cancel("The client hung up.")
            else:
                await self._answer_stop(job, watch)
        except Exception:
            # Our own fault: the client gets an error, the record says so, the log says where.
            exchange.fail(WireError(message="HelmDash failed on this call.", code="internal"))
            raise
        finally:
            watch.stop()
            self.settle(exchange)

    def settle(self, exchange: Exchange) -> None:
        """Hand the record over, once. Never raises: recording must not break the call (S25)."""
        if exchange.is_settled:
            return
        exchange.is_settled = True
        capture = _capture_of(exchange)
        self._recorder.submit(
            project=exchange.key_context.caller.project,
            caller=exchange.key_context.caller.name,
            capture=capture,
            at=exchange.started_at,
        )
        try:
            self._local.note(exchange, capture)
            if exchange.care is not None and exchange.care.note is not None:
                exchange.care.note(capture)
        except Exception:
            log.exception("a call could not be noted for the windows of local models")

    async def _run(self, job: Job, http_request: HttpRequest, watch: ClientWatch) -> None:
        exchange = job.exchange
        exchange.sent_ns = exchange.sent_ns or perf_counter_ns()
        end_turn()
        try:
            opened = await self._client.open(job.endpoint, http_request)
        except UpstreamFailed as failure:
            await self._answer_failure(job, failure, watch)
            return
        try:
            exchange.http_status = opened.status
            _note_attempts(exchange, opened.attempts)
            if opened.status >= 400:
                await self._answer_error(job, opened, watch)
            elif job.is_streamed(opened):
                await self._answer_stream(job, opened, watch)
            else:
                await self._answer_whole(job, opened, watch)
        finally:
            await opened.close()

    async def _answer_stop(self, job: Job, watch: ClientWatch) -> None:
        """The server stops and can wait no longer: say so, in order, instead of breaking off."""
        watch.stop()
        job.exchange.fail(_STOPPED)
        self.settle(job.exchange)
        if not job.responder.has_begun:
            await job.responder.error(_STOPPED, job.headers())
        elif job.open_pipe is not None:
            await job.responder.chunk(job.open_pipe.fail(_STOPPED))
            await job.responder.end_stream()

    async def _answer_failure(self, job: Job, failure: UpstreamFailed, watch: ClientWatch) -> None:
        """No reply came."""
        exchange = job.exchange
        exchange.heard_ns = perf_counter_ns()
        _note_attempts(exchange, failure.attempts)
        # Where it redirects is of its own making.
        is_own = failure.kind is not FailureKind.REDIRECTED
        exchange.fail(_error_of(failure), http_status=failure.http_status, is_own=is_own)
        watch.stop()
        self.settle(exchange)
        await job.responder.error(_error_of(failure), job.headers())

    async def _answer_error(self, job: Job, opened: Opened, watch: ClientWatch) -> None:
        """The upstream refused: handed on as it is, or told in the client's own shape."""
        exchange = job.exchange
        try:
            data = await opened.read(_MOST_ERROR_BYTES)
        except UpstreamFailed:
            data = b""  # the status alone says enough
        exchange.heard_ns = perf_counter_ns()
        data = job.without_key(data)
        error = job.upstream.read_error(opened.status, data)
        if is_overflow(error):
            # llama.cpp says it beside its message.
            exchange.refused_window = refused_window(error.message) or refused_window(
                data.decode("utf-8", "replace")
            )
        if await self._has_gone_on(job, error, opened, watch):
            return
        exchange.fail(error, is_own=False)
        watch.stop()
        self.settle(exchange)
        headers = [*job.headers(), *job.passed_headers(opened)]
        if job.is_native and is_json_body(data):
            await job.responder.whole(opened.status, data, [*headers, _type_of(opened)])
        else:
            told = replace(error, status=error.status or opened.status)
            await job.responder.error(normalise_overflow_error(told), headers)

    async def _has_gone_on(
        self, job: Job, error: WireError, opened: Opened, watch: ClientWatch
    ) -> bool:
        """Send what is left of the request after a fresh start, if it was too long: once."""
        again = await job.shortened(error)
        if again is None:
            return False
        await opened.close()
        exchange = job.exchange
        exchange.refused_attempts = _refused(opened, error)
        exchange.heard_ns = exchange.first_ns = exchange.http_status = exchange.reply = None
        await self._run(job, again, watch)
        return True

    async def _answer_whole(self, job: Job, opened: Opened, watch: ClientWatch) -> None:
        exchange = job.exchange
        try:
            data = job.without_key(await opened.read(MOST_REPLY_BYTES))
        except UpstreamFailed as failure:
            await self._answer_failure(job, failure, watch)
            return
        exchange.heard_ns = exchange.first_ns = perf_counter_ns()
        reply = exchange.reply = job.read_whole(data)
        if reply.error is not None and await self._has_gone_on(job, reply.error, opened, watch):
            return
        if job.is_native or reply.error is not None:
            sent, kind = job.pass_whole(data), _type_of(opened)
        else:
            sent, kind = job.write_whole(reply)
        headers = [*job.headers(level=exchange.level(reply.usage)), *job.passed_headers(opened)]
        watch.stop()
        self.settle(exchange)
        if reply.error is not None and not job.is_native:
            await job.responder.error(
                replace(reply.error, status=reply.error.status or 502), headers
            )
        else:
            await job.responder.whole(200, sent, [*headers, kind])

    async def _answer_stream(self, job: Job, opened: Opened, watch: ClientWatch) -> None:
        exchange, responder = job.exchange, job.responder
        collector = exchange.collector = Collector()
        pipe = job.open_pipe = job.pipe()
        exchange.heard_ns = perf_counter_ns()
        kind = opened.headers["content-type"] if job.is_native else job.client.stream_type
        await responder.begin_stream(kind, [*job.headers(), *job.passed_headers(opened)])
        try:
            async for data in opened.chunks():
                out, events = pipe.feed(job.without_key(data))
                _take(exchange, collector, events)
                if collector.has_ended:
                    # Before the client sees its last event, not after.
                    self.settle(exchange)
                if out:
                    await responder.chunk(out)
            out, events = pipe.flush()
            _take(exchange, collector, events)
            if _is_broken_off(collector):
                exchange.fail(_BROKEN_OFF)
        except UpstreamFailed as failure:
            exchange.fail(_error_of(failure))
            out = pipe.fail(_error_of(failure))
        watch.stop()
        self.settle(exchange)
        job.open_pipe = None
        if out:
            await responder.chunk(out)
        await responder.end_stream()


_BROKEN_OFF = WireError(
    message="The upstream ended its stream without a finish reason.", code="closed_early"
)


def _capture_of(exchange: Exchange) -> Capture:
    """All that the call told; where that cannot be put together, what is known for certain."""
    try:
        return exchange.capture()
    except Exception:
        log.exception("what a call told could not be put together")
        return exchange.bare_capture()


def _take(exchange: Exchange, collector: Collector, events: list[Event]) -> None:
    for event in events:
        collector.add(event)
        if exchange.first_ns is None and isinstance(event, _CONTENT):
            exchange.first_ns = perf_counter_ns()


def _is_broken_off(collector: Collector) -> bool:
    """Something came, and neither an end nor a reason for it. (Nothing at all is another cause.)"""
    has_end = collector.has_ended or collector.finish_reason is not None
    came = collector.has_visible or collector.has_reasoning
    return came and not has_end and collector.error is None


def _note_attempts(exchange: Exchange, attempts: tuple[Any, ...]) -> None:
    """More than one, or a failed one: a single good one has nothing to tell."""
    refused = exchange.refused_attempts
    if refused:
        attempts = tuple(
            {**attempt, "number": number} for number, attempt in enumerate((*refused, *attempts), 1)
        )
    if len(attempts) > 1:
        exchange.attempts = attempts


def _refused(opened: Opened, error: WireError) -> tuple[Mapping[str, Any], ...]:
    """The attempts at a request that was too long; the last of them says so."""
    *before, last = opened.attempts or ({"status": opened.status},)
    said = error.message[:_ATTEMPT_CHARS]
    return (*before, {**last, "error": "context_overflow", "message": said})


def _error_of(failure: UpstreamFailed) -> WireError:
    status = 504 if failure.kind.value.startswith("timeout") else 502
    return WireError(
        message=failure.message, code=failure.code, type="upstream_error", status=status
    )


def _type_of(opened: Opened) -> Header:
    kind = opened.headers.get("content-type", "application/json")
    return (b"content-type", kind.encode("latin-1", "replace"))


def _uncancel() -> None:
    """The hang-up has been dealt with: this task goes on and ends in order."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
