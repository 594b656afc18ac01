"""The OTLP face as an ASGI application: who exports, what, and what is answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from time import monotonic
from urllib.parse import unquote_to_bytes

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError

from helmdash.core.calls.capture import Capture
from helmdash.core.telemetry.logs import TimedEvent
from helmdash.core.telemetry.nesting import Nameless, SpanKey
from helmdash.core.telemetry.values import Span
from helmdash.doors.asgi import Disconnected, Message, Receive, Scope, Send, headers_of, note_known
from helmdash.doors.body import Bodies, is_plain
from helmdash.doors.callers.directory import Directory
from helmdash.doors.callers.keys import admit, admit_again, owner_of
from helmdash.doors.callers.knocks import Knocks
from helmdash.doors.callers.proxies import address_of
from helmdash.doors.faults import Fault, NoKey
from helmdash.doors.heavy import is_handed_on
from helmdash.doors.http.unpacking import Coding, is_small_unpacked, unpacking
from helmdash.metrics import telemetry_records
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.recorder import Recorder, RecorderFull
from helmdash.operations.recording.client_events import note_events
from helmdash.operations.recording.spans.awaited_sessions import settle_sessions
from helmdash.operations.recording.spans.span_names import lead_on
from helmdash.otlp.reading import Reading, read_export
from helmdash.otlp.signals import (
    SIGNALS,
    Encoding,
    MissingScope,
    RecorderBusy,
    Signal,
    WrongEncoding,
    WrongMethod,
    encoding_of,
    status_body,
    success,
)
from helmdash.queries.access.access import Caller, ProjectInfo

log = logging.getLogger(__name__)

# What the protocol recommends, unpacked; a caller's share of the memory for bodies may be less, and
# has to hold what was packed, too.
_MOST_BYTES = 64 * 1024 * 1024
# As many calls as one report of the API may have: a transaction that is over soon.
_CHUNK_CALLS = 1_000
# Beyond, decoding takes longer than others should wait for: 256 KiB are some 300 spans, 10 ms.
_LIGHT_BYTES = 256 * 1024
_LIGHT_PACKED_BYTES = 64 * 1024
# Two cores have no use for more.
_THREADS = 2
_SCOPE = "record"
# How the worker that took a large export tells what it was: metrics are this process's.
_COUNTS = b"x-helmdash-records"

Header = tuple[bytes, bytes]


class OtlpApp:
    """`/v1/traces`, `/v1/logs` and `/v1/metrics`: OTLP/HTTP in protobuf and JSON.

    One for each process, used on one event loop.
    """

    def __init__(
        self,
        *,
        recorder: Recorder,
        directory: Directory,
        bodies: Bodies,
        knocks: Knocks,
    ) -> None:
        self._knocks = knocks
        self._recorder = recorder
        self._directory = directory
        self._bodies = bodies
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="otlp")

    def close(self) -> None:
        """End the threads; what waits there is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one export."""
        signal = SIGNALS[scope["path"]]
        headers = headers_of(scope)
        encoding = encoding_of(headers)
        try:
            await self._answer(signal, encoding, scope, headers, receive, send)
        except Fault as fault:
            if fault.status == HTTPStatus.UNAUTHORIZED:
                self._knocks.note_key(
                    method=scope["method"],
                    path=scope["path"],
                    user_agent=headers.get(b"user-agent", b"").decode("latin-1"),
                    advice=str(fault),
                    now=datetime.now(UTC),
                )
            await _refuse(send, fault, encoding or Encoding.JSON)
        except Disconnected:
            return
        except Exception:
            log.exception("an export could not be taken")
            message = "HelmDash failed on this export. Its log says where."
            await _send(send, 500, status_body(500, message, encoding or Encoding.JSON), encoding)

    async def _answer(
        self,
        signal: Signal,
        encoding: Encoding | None,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        send: Send,
    ) -> None:
        since, keyed = monotonic(), _decoded(headers)
        key_context = await admit(self._directory, keyed, address=address_of(scope))
        note_known(scope)
        _require_scope(key_context.caller)
        if scope["method"] != "POST":
            raise WrongMethod
        if encoding is None:
            raise WrongEncoding(
                "Send the export as application/x-protobuf or application/json (Content-Type)."
            )
        is_packed = _is_packed(headers)
        owner = owner_of(key_context)
        limit = min(_MOST_BYTES, self._bodies.share_bytes)
        async with self._bodies.reading(
            headers, receive, owner=owner, most_bytes=limit, may_be_packed=True
        ) as body:
            key_context = await admit_again(
                self._directory, keyed, key_context=key_context, since=since
            )
            _require_scope(key_context.caller)
            is_large = _is_large(body, is_packed=is_packed)
            if await is_handed_on(scope, body, receive, _counting(send, signal), is_large=is_large):
                return
            if is_packed:
                packed = unpacking(
                    self._bodies, body, coding=Coding.GZIP, owner=owner, most_bytes=_MOST_BYTES
                )
                async with packed as unpacked:
                    found = await self._read(signal, encoding, unpacked)
            else:
                found = await self._read(signal, encoding, body)
        found = await self._store(found, key_context.caller)
        answer = success(signal, encoding, rejected=found.rejected, why=found.why)
        counts = _counts(found)
        _count(signal, counts)
        await _send(send, 200, answer, encoding, [(_COUNTS, counts)])

    async def _store(self, found: Reading, caller: Caller) -> Reading:
        """Store what an export tells; gives it without what was refused. Raises RecorderBusy."""
        if found.spans:
            await self._in_thread(partial(_lead_on, found.spans, caller.project))
        await self._record(found.captures, caller)
        if found.spans:
            await self._in_thread(
                partial(_settle_sessions, found.spans, found.nameless, caller.project)
            )
        if found.events:
            # Told twice, it is kept once; how many were too many.
            refused = await self._in_thread(partial(_note_events, found.events, caller.project))
            found = found.without_events(refused) if refused else found
        return found

    async def _read(self, signal: Signal, encoding: Encoding, body: bytes) -> Reading:
        work = partial(read_export, signal, encoding, body, now=datetime.now(UTC))
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _in_thread(self, work: Callable[[datetime], int]) -> int:
        """What a write that the recorder does not make has to say. Raises RecorderBusy."""
        now = datetime.now(UTC)
        try:
            if self._recorder.is_started:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._threads, _with_connection, work, now)
            return await sync_to_async(work)(now)
        except (OperationalError, InterfaceError):
            raise RecorderBusy("The database is unavailable.") from None

    async def _record(self, captures: Sequence[Capture], caller: Caller) -> None:
        """Store the calls, each chunk in a transaction. Raises RecorderBusy: what was stored before
        is a duplicate when the export comes again."""
        for start in range(0, len(captures), _CHUNK_CALLS):
            report = partial(
                self._recorder.record,
                project=caller.project,
                captures=captures[start : start + _CHUNK_CALLS],
                caller=caller.name,
                now=datetime.now(UTC),
            )
            try:
                # Where no server started it (tests), it stores here and now.
                is_started = self._recorder.is_started
                answers = report() if is_started else await sync_to_async(report)()
                await self._recorder.answered(answers)
            except RecorderFull as full:
                raise RecorderBusy(str(full)) from None
            except (OperationalError, InterfaceError):
                raise RecorderBusy("The database is unavailable.") from None


def _require_scope(caller: Caller) -> None:
    """Refuse a key that may not record. Raises MissingScope."""
    if not caller.may(_SCOPE):
        raise MissingScope(f"The key {caller.name} lacks the scope {_SCOPE}.")


def _note_events(events: Sequence[TimedEvent], project: ProjectInfo, now: datetime) -> int:
    # Of a conversation without a call nothing can be said yet.
    told = [(each.event, min(each.at or now, now)) for each in events]
    return note_events(project=project, events=told)


def _lead_on(spans: Mapping[SpanKey, Span], project: ProjectInfo, now: datetime) -> int:
    return lead_on(project_id=project.id, spans=spans)


def _settle_sessions(
    spans: Mapping[SpanKey, Span], nameless: Sequence[Nameless], project: ProjectInfo, now: datetime
) -> int:
    return settle_sessions(project=project, spans=spans, nameless=nameless, now=now)


def _with_connection(work: Callable[[datetime], int], now: datetime) -> int:
    with thread_connection():
        return work(now)


def _decoded(headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """The headers as they are meant: OTEL_EXPORTER_OTLP_HEADERS is percent-encoded, and not every
    exporter decodes it."""
    key = headers.get(b"authorization", b"")
    if b"%" not in key:
        return headers
    return {**headers, b"authorization": unquote_to_bytes(key)}


def _is_packed(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the body is gzip. Raises WrongEncoding for any other coding."""
    if is_plain(headers):
        return False
    if headers[b"content-encoding"].strip().lower() != b"gzip":
        raise WrongEncoding("Send the export as it is, or as gzip (Content-Encoding).")
    return True


def _is_large(body: bytes, *, is_packed: bool) -> bool:
    if not is_packed:
        return len(body) > _LIGHT_BYTES
    return len(body) > _LIGHT_PACKED_BYTES or not is_small_unpacked(body, _LIGHT_BYTES)


def _counts(found: Reading) -> bytes:
    return f"call={len(found.captures)} other={found.others} rejected={found.rejected}".encode()


def _count(signal: Signal, counts: bytes) -> None:
    for part in counts.decode("latin-1").split():
        became, _, number = part.partition("=")
        if number.isdecimal():
            telemetry_records.labels(signal.value, became).inc(int(number))


def _counting(send: Send, signal: Signal) -> Send:
    """A send that counts what the worker says it took."""

    async def counted(message: Message) -> None:
        if message["type"] == "http.response.start":
            for name, value in message.get("headers", ()):
                if name == _COUNTS:
                    _count(signal, value)
        await send(message)

    return counted


async def _refuse(send: Send, fault: Fault, encoding: Encoding) -> None:
    """A google.rpc.Status. The connection is closed: the rest of the body is not read."""
    headers: list[Header] = [(b"connection", b"close")]
    if fault.status == 401:
        token = b"" if isinstance(fault, NoKey) else b', error="invalid_token"'
        headers.append((b"www-authenticate", b'Bearer realm="HelmDash"' + token))
    if fault.status == 405:
        headers.append((b"allow", b"POST"))
    if fault.retry_after_s is not None:
        headers.append((b"retry-after", str(fault.retry_after_s).encode()))
    body = status_body(fault.status, str(fault), encoding)
    await _send(send, fault.status, body, encoding, headers)


async def _send(
    send: Send,
    status: int,
    body: bytes,
    encoding: Encoding | None,
    headers: Sequence[Header] = (),
) -> None:
    sent = [
        (b"content-type", (encoding or Encoding.JSON).value.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
