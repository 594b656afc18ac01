"""Exports in both encodings, and an OTLP face to send them to, without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from google.protobuf.message import Message as ProtobufMessage
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from helmdash.doors.asgi import Message
from helmdash.doors.body import Bodies, Limits
from helmdash.doors.callers.directory import Directory, KeyContext
from helmdash.doors.callers.knocks import Knocks
from helmdash.operations.recorder import recorder
from helmdash.otlp.app import OtlpApp
from helmdash.queries.access.access import Caller, find_caller
from helmdash.queries.budgets import budgets

JSON, PROTOBUF = "application/json", "application/x-protobuf"
TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_780_000_000_000_000_000
MIB = 1024 * 1024

Attributes = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SpanOut:
    """A span as its exporter knows it."""

    number: int = 1
    parent: int = 0
    name: str = "chat"
    trace: str = TRACE
    attributes: Attributes = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its span id, in hexadecimals."""
        return f"{self.number:016x}"


def spans_json(spans: Sequence[SpanOut], *, scope: str = "", resource: Attributes = {}) -> bytes:  # noqa: B006
    """An ExportTraceServiceRequest in OTLP's JSON."""
    told = [
        {
            "traceId": span.trace.upper(),
            "spanId": span.id,
            **({"parentSpanId": f"{span.parent:016x}"} if span.parent else {}),
            "name": span.name,
            "kind": 3,
            "startTimeUnixNano": str(START),
            "endTimeUnixNano": START + 2_000_000_000,
            "attributes": _pairs(span.attributes),
            "nobodyKnows": {"this": [1]},
        }
        for span in spans
    ]
    group = {"scope": {"name": scope}, "spans": told}
    about = {"attributes": _pairs(resource)}
    return json.dumps({"resourceSpans": [{"resource": about, "scopeSpans": [group]}]}).encode()


def spans_protobuf(
    spans: Sequence[SpanOut],
    *,
    scope: str = "",
    resource: Attributes = {},  # noqa: B006
) -> bytes:
    """The same in protobuf."""
    request = ExportTraceServiceRequest()
    about = request.resource_spans.add()
    _fill(about.resource.attributes, resource)
    group = about.scope_spans.add()
    group.scope.name = scope
    for span in spans:
        made = group.spans.add()
        made.trace_id, made.span_id = bytes.fromhex(span.trace), bytes.fromhex(span.id)
        made.parent_span_id = span.parent.to_bytes(8, "big") if span.parent else b""
        made.name, made.kind = span.name, 3
        made.start_time_unix_nano, made.end_time_unix_nano = START, START + 2_000_000_000
        _fill(made.attributes, span.attributes)
    written: bytes = request.SerializeToString()
    return written


def logs_json(records: Sequence[Attributes], *, scope: str) -> bytes:
    """An ExportLogsServiceRequest in OTLP's JSON; each record by its attributes."""
    told = [{"observedTimeUnixNano": str(START), "attributes": _pairs(each)} for each in records]
    group = {"scope": {"name": scope}, "logRecords": told}
    return json.dumps({"resourceLogs": [{"scopeLogs": [group]}]}).encode()


def logs_protobuf(records: Sequence[Attributes], *, scope: str) -> bytes:
    """The same in protobuf."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add().scope_logs.add()
    group.scope.name = scope
    for each in records:
        made = group.log_records.add()
        made.observed_time_unix_nano = START
        _fill(made.attributes, each)
    written: bytes = request.SerializeToString()
    return written


def _pairs(told: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in told.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {} if value is None else {"stringValue": value}


def _fill(pairs: Any, told: Attributes) -> None:
    for name, value in told.items():
        pair = pairs.add()
        pair.key = name
        _set(pair.value, value)


def _set(target: Any, value: Any) -> None:
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, dict):
        _fill(target.kvlist_value.values, value)
    elif isinstance(value, list):
        for each in value:
            _set(target.array_value.values.add(), each)
    elif value is not None:
        target.string_value = value


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an exporter gets back."""

    status: int
    headers: dict[str, str]
    body: bytes
    refused_keys: list[str]
    """The paths, and who asked, of requests whose key was refused."""

    @property
    def told(self) -> dict[str, Any]:
        """The body as JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    def parsed(self, *, of: str) -> ProtobufMessage:
        """The body as the response of `traces` or `logs`."""
        kinds: dict[str, Any] = {
            "traces": ExportTraceServiceResponse,
            "logs": ExportLogsServiceResponse,
        }
        message: ProtobufMessage = kinds[of].FromString(self.body)
        return message


class HeardKnocks(Knocks):
    """Keeps what it is told, and stores nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def note_key(
        self, *, method: str, path: str, user_agent: str, advice: str, now: datetime
    ) -> None:
        self.heard.append(f"{method} {path} {user_agent}")


def send(
    body: bytes,
    *,
    key: str,
    path: str = "/v1/traces",
    kind: str = JSON,
    method: str = "POST",
    all_bytes: int = 8 * MIB,
    **headers: str,
) -> Answer:
    """Send an export to a face of its own, as each process has one. all_bytes: of the memory that
    all bodies share."""
    caller = find_caller(key=key)
    context = None
    if caller is not None:
        rules = budgets.table(project_id=caller.project.id)
        context = KeyContext(caller=caller, rules=rules, endpoints=())
    named = {"content-type": kind, "authorization": f"Bearer {key}"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    return async_to_sync(_send)(body, context, path, method, all_bytes, named)


async def _send(
    body: bytes,
    context: KeyContext | None,
    path: str,
    method: str,
    all_bytes: int,
    headers: dict[str, str],
) -> Answer:
    directory = Directory(read=lambda _key: context)
    limits = Limits(
        body_bytes=64 * 1024,
        anonymous_bytes=1024,
        all_bytes=all_bytes,
        seconds=10,
        anonymous_seconds=10,
    )
    app = OtlpApp(
        recorder=recorder(),
        directory=directory,
        bodies=(bodies := Bodies(limits)),
        knocks=(knocks := HeardKnocks()),
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def keep(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
        "client": ("10.3.0.1", 1),
    }
    try:
        await app(scope, receive, keep)
    finally:
        app.close()
        directory.close()
        await knocks.close()
    assert bodies.held_bytes == 0
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(
        status=sent[0]["status"],
        headers=told,
        body=sent[1]["body"],
        refused_keys=knocks.heard,
    )


def caller_of(key: str) -> Caller:
    """Whose key it is."""
    caller = find_caller(key=key)
    assert caller is not None
    return caller
