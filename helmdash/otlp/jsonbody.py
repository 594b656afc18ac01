"""Exports in JSON, which differs from protobuf's own JSON: ids are hexadecimals, numbers of 64 bits
texts or numbers, enumerations numbers, and unknown members are let be.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from helmdash.core.telemetry.values import Exporter, LogRecord, Span
from helmdash.doors.faults import BadBody
from helmdash.doors.validation import read_json
from helmdash.otlp.export import (
    MOST_LEVELS,
    SPAN_CHARS,
    TRACE_CHARS,
    Export,
    check_records,
    is_id,
)
from helmdash.otlp.signals import BadExport, Signal, TooManyRecords

_CLIENT = 3  # SPAN_KIND_CLIENT
_ERROR = 2  # STATUS_CODE_ERROR
_MOST_NS = 2**64 - 1
_HEX = re.compile(r"[0-9a-f]*", re.A)
# What a text may hold of these before it is read, since each becomes an object of its own: twice
# what 64 MiB of the shortest attributes that make sense have.
_MOST_BRACKETS = 4_000_000
_MOST_QUOTES = 20_000_000
_MOST_COMMAS = 8_000_000
# Escapes of one half of a character, behind the backslashes before them, which stand for others.
_HIGH_ALONE = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_LOW_ALONE = re.compile(
    rb"(?<!\\)(?<!\\u[dD][89abAB][0-9a-fA-F]{2})((?:\\\\)*)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_POINTS = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")


def decode(signal: Signal, body: bytes) -> Export:
    """Read a body. Raises BadBody, BadExport, naming the member that is wrong, TooManyRecords."""
    if (
        body.count(b"{") + body.count(b"[") > _MOST_BRACKETS
        or body.count(b'"') > _MOST_QUOTES
        or body.count(b",") > _MOST_COMMAS
    ):
        raise TooManyRecords("The body has too many values. Send smaller batches.")
    try:
        request = read_json(body)
    except BadBody:
        whole = _without_halves(body)
        if whole == body:
            raise
        request = read_json(whole)
    if not isinstance(request, dict):
        raise BadExport("body: must be an object")
    if signal is Signal.TRACES:
        return _traces(request)
    return _logs(request) if signal is Signal.LOGS else _metrics(request)


def _without_halves(body: bytes) -> bytes:
    """The body with U+FFFD for halves of characters. JavaScript's strings have them where a text
    was cut, and its exporters write them as escapes, which strict readers of JSON refuse."""
    return _LOW_ALONE.sub(rb"\1\\ufffd", _HIGH_ALONE.sub(rb"\1\\ufffd", body))


def _traces(request: Mapping[str, Any]) -> Export:
    spans = list(_records(request, "resourceSpans", "scopeSpans", "spans"))
    check_records(len(spans))
    found = Export()
    for source, span in spans:
        trace, own = _id(span.get("traceId")), _id(span.get("spanId"))
        if not (is_id(trace, TRACE_CHARS) and is_id(own, SPAN_CHARS)):
            found.rejected += 1
            continue
        parent, status = _id(span.get("parentSpanId")), _object(span.get("status"))
        found.spans.append(
            Span(
                source=source,
                trace_id=trace,
                span_id=own,
                parent_id=parent if is_id(parent, SPAN_CHARS) else "",
                name=_text(span.get("name")),
                is_client=span.get("kind") == _CLIENT,
                start_ns=_nanoseconds(span.get("startTimeUnixNano")),
                end_ns=_nanoseconds(span.get("endTimeUnixNano")),
                attributes=_attributes(span.get("attributes")),
                error=status.get("code") == _ERROR,
                message=_text(status.get("message")),
                exception=_exception(span.get("events")),
            )
        )
    return found


def _logs(request: Mapping[str, Any]) -> Export:
    records = list(_records(request, "resourceLogs", "scopeLogs", "logRecords"))
    check_records(len(records))
    found = Export()
    for source, record in records:
        trace, own = _id(record.get("traceId")), _id(record.get("spanId"))
        if len(trace) not in (0, TRACE_CHARS) or len(own) not in (0, SPAN_CHARS):
            found.rejected += 1
            continue
        time = _nanoseconds(record.get("timeUnixNano"))
        found.logs.append(
            LogRecord(
                source=source,
                # A record may belong to no span; zeros say so as well.
                trace_id=trace if is_id(trace, TRACE_CHARS) else "",
                span_id=own if is_id(own, SPAN_CHARS) else "",
                name=_text(record.get("eventName")),
                time_ns=time or _nanoseconds(record.get("observedTimeUnixNano")),
                body=_text(_object(record.get("body")).get("stringValue")),
                attributes=_attributes(record.get("attributes")),
            )
        )
    return found


def _metrics(request: Mapping[str, Any]) -> Export:
    found = Export()
    for _, metric in _records(request, "resourceMetrics", "scopeMetrics", "metrics"):
        for kind in _POINTS:
            points = _object(metric.get(kind)).get("dataPoints")
            found.points += len(points) if isinstance(points, list) else 0
    check_records(found.points)
    return found


def _records(
    request: Mapping[str, Any], resources: str, scopes: str, records: str
) -> Iterator[tuple[Exporter, Mapping[str, Any]]]:
    """Each record with what stands around it. Raises BadExport."""
    for number, resource in enumerate(_list(request, resources, resources)):
        place = f"{resources}[{number}].{scopes}"
        about = _attributes(_object(resource.get("resource")).get("attributes"))
        for index, group in enumerate(_list(resource, scopes, place)):
            scope = _object(group.get("scope"))
            source = Exporter(_text(scope.get("name")), _text(scope.get("version")), about)
            for record in _list(group, records, f"{place}[{index}].{records}"):
                yield source, record


def _list(holder: Mapping[str, Any], name: str, place: str) -> list[Mapping[str, Any]]:
    """A list of objects; left out and null are an empty one. Raises BadExport."""
    value = holder.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadExport(f"{place}: must be a list of objects.")
    return value


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> str:
    """An id in small hexadecimals; "" where it is left out, "?" where it is none."""
    if value is None or value == "":
        return ""
    low = value.lower() if isinstance(value, str) else "?"
    return low if _HEX.fullmatch(low) else "?"


def _nanoseconds(value: object) -> int:
    number = _whole(value)
    return number if number is not None and 0 < number <= _MOST_NS else 0


def _whole(value: object) -> int | None:
    """A number of 64 bits, written as a number or as text."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _exception(events: object) -> dict[str, object]:
    """What the newest exception says."""
    for event in reversed(events) if isinstance(events, list) else ():
        if _object(event).get("name") == "exception":
            return _attributes(event.get("attributes"))
    return {}


def _attributes(pairs: object, level: int = 0) -> dict[str, object]:
    """What has a key that is a text; anything else says nothing."""
    return {
        pair["key"]: _value(pair.get("value"), level)
        for pair in (pairs if isinstance(pairs, list) else ())
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _value(value: object, level: int) -> object:
    told = _object(value)
    for kind, wanted in (("stringValue", str), ("boolValue", bool), ("doubleValue", (int, float))):
        found = told.get(kind)
        if found is not None:
            return found if isinstance(found, wanted) else None
    if "intValue" in told:
        return _whole(told["intValue"])
    if level >= MOST_LEVELS:
        return None
    values = _object(told.get("arrayValue")).get("values")
    if isinstance(values, list):
        return [_value(each, level + 1) for each in values]
    values = _object(told.get("kvlistValue")).get("values")
    return _attributes(values, level + 1) if isinstance(values, list) else None
