"""Exports in protobuf. The only importer of the generated classes (ADR 42)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from helmdash.core.telemetry.values import Exporter, LogRecord, Span
from helmdash.otlp.export import (
    MOST_LEVELS,
    MOST_RECORDS,
    SPAN_CHARS,
    TRACE_CHARS,
    Export,
    check_records,
    is_id,
)
from helmdash.otlp.signals import BadExport, Signal, TooManyRecords
from helmdash.otlp.unreadable import unreadable_member
from helmdash.otlp.wire import BrokenWire, Table, count_messages, path_table, whole_table

_CLIENT = 3  # SPAN_KIND_CLIENT
_ERROR = 2  # STATUS_CODE_ERROR
_POINTS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
_REQUESTS: dict[Signal, Any] = {
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}
# Where the records of each signal lie: each level may have as many members as there are records.
_LEVELS: dict[Signal, tuple[tuple[str, ...], ...]] = {
    Signal.TRACES: (("resource_spans",), ("scope_spans",), ("spans",)),
    Signal.LOGS: (("resource_logs",), ("scope_logs",), ("log_records",)),
    Signal.METRICS: (
        ("resource_metrics",),
        ("scope_metrics",),
        ("metrics",),
        _POINTS,
        ("data_points",),
    ),
}
_PATHS: dict[Signal, Table] = {
    signal: path_table(_REQUESTS[signal].DESCRIPTOR, *levels) for signal, levels in _LEVELS.items()
}
_TABLES: dict[Signal, Table] = {
    signal: whole_table(request.DESCRIPTOR) for signal, request in _REQUESTS.items()
}
# What lies in the records: twice what 64 MiB of attributes that make sense have (as in JSON), and
# some 350 MB of the emptiest that there are.
_MOST_MESSAGES = 4_000_000
_LEAST_BYTES = 2  # of a message


def decode(signal: Signal, body: bytes) -> Export:
    """Read a body. Raises BadExport and TooManyRecords."""
    try:
        _check_size(signal, body)
        request = _REQUESTS[signal].FromString(body)
    except (BrokenWire, DecodeError):
        descriptor = _REQUESTS[signal].DESCRIPTOR
        why = unreadable_member(body, descriptor)
        raise BadExport(why or f"The body is not a protobuf message {descriptor.name}.") from None
    if signal is Signal.TRACES:
        return _traces(request)
    return _logs(request) if signal is Signal.LOGS else _metrics(request)


def _check_size(signal: Signal, body: bytes) -> None:
    """Before anything is made of it. Raises TooManyRecords and BrokenWire."""
    most = len(_LEVELS[signal]) * MOST_RECORDS
    if count_messages(body, _PATHS[signal], most) > most:
        raise TooManyRecords(
            f"An export may hold at most {MOST_RECORDS} records, resources and scopes each. "
            "Send smaller batches."
        )
    # A small body cannot hold so many, and need not be walked through.
    if len(body) <= _LEAST_BYTES * _MOST_MESSAGES:
        return
    if count_messages(body, _TABLES[signal], _MOST_MESSAGES) > _MOST_MESSAGES:
        raise TooManyRecords("The body has too many values. Send smaller batches.")


def _traces(request: Any) -> Export:
    check_records(sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans))
    found = Export()
    for resource in request.resource_spans:
        about = _attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            source = Exporter(scope.scope.name, scope.scope.version, about)
            for span in scope.spans:
                trace, own = span.trace_id.hex(), span.span_id.hex()
                if not (is_id(trace, TRACE_CHARS) and is_id(own, SPAN_CHARS)):
                    found.rejected += 1
                    continue
                found.spans.append(_span(span, source, trace, own))
    return found


def _span(span: Any, source: Exporter, trace: str, own: str) -> Span:
    parent = span.parent_span_id.hex()
    failed = [event for event in span.events if event.name == "exception"]
    return Span(
        source=source,
        trace_id=trace,
        span_id=own,
        parent_id=parent if is_id(parent, SPAN_CHARS) else "",
        name=span.name,
        is_client=span.kind == _CLIENT,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        error=span.status.code == _ERROR,
        message=span.status.message,
        exception=_attributes(failed[-1].attributes) if failed else {},
    )


def _logs(request: Any) -> Export:
    check_records(sum(len(s.log_records) for r in request.resource_logs for s in r.scope_logs))
    found = Export()
    for resource in request.resource_logs:
        about = _attributes(resource.resource.attributes)
        for scope in resource.scope_logs:
            source = Exporter(scope.scope.name, scope.scope.version, about)
            for record in scope.log_records:
                trace, own = record.trace_id.hex(), record.span_id.hex()
                if len(trace) not in (0, TRACE_CHARS) or len(own) not in (0, SPAN_CHARS):
                    found.rejected += 1
                    continue
                body = record.body
                found.logs.append(
                    LogRecord(
                        source=source,
                        # A record may belong to no span; zeros say so as well.
                        trace_id=trace if is_id(trace, TRACE_CHARS) else "",
                        span_id=own if is_id(own, SPAN_CHARS) else "",
                        name=record.event_name,
                        time_ns=record.time_unix_nano or record.observed_time_unix_nano,
                        body=body.string_value,
                        attributes=_attributes(record.attributes),
                    )
                )
    return found


def _metrics(request: Any) -> Export:
    found = Export()
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                if kind in _POINTS:
                    found.points += len(getattr(metric, kind).data_points)
    check_records(found.points)
    return found


def _attributes(pairs: Iterable[Any], level: int = 0) -> dict[str, object]:
    return {pair.key: _value(pair.value, level) for pair in pairs}


def _value(value: Any, level: int) -> object:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value", "bool_value"):
        return getattr(value, kind)
    if level >= MOST_LEVELS:
        return None
    if kind == "array_value":
        return [_value(each, level + 1) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values, level + 1)
    return None
