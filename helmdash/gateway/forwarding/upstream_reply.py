"""What comes back from an upstream: nothing, a refusal, a whole reply, or a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter_ns

from helmdash.core.budgets.refused_windows import refused_window
from helmdash.core.values import quick_value
from helmdash.gateway.forwarding.attempt import Attempt, Translator
from helmdash.gateway.forwarding.overflow_errors import is_overflow
from helmdash.gateway.responder import Header, passed_headers
from helmdash.providers.wire import Reply, WireError
from helmdash.upstream.failures import FailureKind, UpstreamFailed
from helmdash.upstream.opened import Opened

# A whole reply larger than this is refused rather than held in memory.
MOST_REPLY_BYTES = 64 * 1024 * 1024
# An error page beyond this says nothing more.
_MOST_ERROR_BYTES = 1024 * 1024
# Reading more takes longer than other clients should wait for: a quarter of a MB takes some 15 ms.
_LIGHT_BYTES = 256 * 1024
# As much of a refusal as an attempt keeps.
_ATTEMPT_CHARS = 500

Attempts = tuple[Mapping[str, object], ...]  # every try at one request, ready for JSON


@quick_value(frozen=True, slots=True, kw_only=True)
class NoReply:
    """Nothing came, or not all of it. `http_status` None: not even a status."""

    error: WireError
    http_status: int | None
    is_own: bool  # the error's message is ours, and not the provider's
    heard_ns: int
    attempts: Attempts
    headers: tuple[Header, ...] = ()


@quick_value(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """The upstream refused, with a status of 400 or more.

    `refused_window`: tokens of context that it names; None: it names none.
    """

    status: int
    data: bytes
    error: WireError
    refused_window: int | None
    headers: tuple[Header, ...]
    content_type: Header
    is_native: bool
    heard_ns: int
    attempts: Attempts

    @property
    def too_long(self) -> Attempts:
        """The attempts at a request that was too long; none where the refusal says otherwise."""
        return _too_long(self.attempts, self.status, self.error)


@quick_value(frozen=True, slots=True, kw_only=True)
class WholeReply:
    """A success in one piece; `reply.error` where it holds an error all the same."""

    status: int
    data: bytes
    reply: Reply
    headers: tuple[Header, ...]
    content_type: Header
    is_native: bool
    translator: Translator
    heard_ns: int
    attempts: Attempts

    @property
    def too_long(self) -> Attempts:
        """The attempts at a request that was too long; none where the reply says otherwise."""
        return _too_long(self.attempts, self.status, self.reply.error)


@quick_value(frozen=True, slots=True, kw_only=True)
class StreamReply:
    """A success whose body comes piece by piece: whoever has this closes `opened`."""

    opened: Opened
    headers: tuple[Header, ...]
    content_type: str  # of the client's stream
    attempt: Attempt


UpstreamReply = NoReply | ErrorReply | WholeReply | StreamReply


async def read_reply(attempt: Attempt, opened: Opened) -> UpstreamReply:
    """Read what has been opened, all but a stream, and close it."""
    status, translator = opened.status, attempt.translator
    headers = attempt.headers_without_secret(passed_headers(opened.headers))
    kind = opened.headers.get("content-type", "")
    if status < 400 and translator.is_streamed(kind):
        return StreamReply(
            opened=opened,
            headers=headers,
            content_type=translator.stream_type(kind),
            attempt=attempt,
        )
    unread: UpstreamFailed | None = None
    try:
        data = await attempt.read(opened, _MOST_ERROR_BYTES if status >= 400 else MOST_REPLY_BYTES)
    except UpstreamFailed as failure:
        if status < 400:
            return no_reply(failure)
        data, unread = b"", failure  # the status alone says enough
    finally:
        await opened.close()
    heard_ns = perf_counter_ns()
    content_type = (b"content-type", (kind or "application/json").encode("latin-1", "replace"))
    if status < 400:
        return WholeReply(
            status=status,
            data=data,
            reply=await _read_whole(translator, data),
            headers=headers,
            content_type=content_type,
            is_native=translator.is_native,
            translator=translator,
            heard_ns=heard_ns,
            attempts=opened.attempts,
        )
    error = translator.read_error(status, data)
    if unread is not None:
        error = replace(error, message=f"HTTP {status}, and no more: {unread.message}")
    window = None
    if is_overflow(error):
        # llama.cpp says it beside its message.
        window = refused_window(error.message) or refused_window(data.decode("utf-8", "replace"))
    return ErrorReply(
        status=status,
        data=data,
        error=error,
        refused_window=window,
        headers=headers,
        content_type=content_type,
        is_native=translator.is_native,
        heard_ns=heard_ns,
        attempts=opened.attempts,
    )


async def _read_whole(translator: Translator, data: bytes) -> Reply:
    if len(data) <= _LIGHT_BYTES:
        return translator.read_whole(data)
    return await asyncio.to_thread(translator.read_whole, data)


def no_reply(failure: UpstreamFailed) -> NoReply:
    """What is known where nothing came."""
    return NoReply(
        error=error_of(failure),
        http_status=failure.http_status,
        # Where it redirects is of its own making.
        is_own=failure.kind is not FailureKind.REDIRECTED,
        heard_ns=perf_counter_ns(),
        attempts=failure.attempts,
    )


def error_of(failure: UpstreamFailed) -> WireError:
    """The failure as a client is told of it: 504 where time ran out, else 502."""
    status = 504 if failure.kind.value.startswith("timeout") else 502
    return WireError(
        message=failure.message, code=failure.code, type="upstream_error", status=status
    )


def _too_long(attempts: Attempts, status: int, error: WireError | None) -> Attempts:
    """The last of them says so."""
    if error is None or not is_overflow(error):
        return ()
    *before, last = attempts or ({"status": status},)
    said = error.message[:_ATTEMPT_CHARS]
    return (*before, {**last, "error": "context_overflow", "message": said})
