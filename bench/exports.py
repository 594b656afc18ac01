"""10,000 calls by one OTLP export, against the same calls as ten full batches of the API.

An exporter that catches up after an outage sends so much at once; it should not take longer than
reports do. Both say the same of each call (model, tokens, session); both take turns within one run,
on tables that grow. SQLite and PostgreSQL, JSON and protobuf, the latter also as gzip.
"""

from __future__ import annotations

import gzip
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.databases import Place, places, serving
from bench.table import Row

CALLS = 10_000
_BATCH = 1_000
_ROUNDS = 3
# An export may be a little slower, for it has to be looked through first.
GOAL = 0.8
_SESSIONS = 50
_START = 1_780_000_000_000_000_000
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"


def rows() -> list[Row]:
    """Calls stored per second by an export, beside batches, on each database."""
    with places() as found:
        return [row for place in found for row in _measure(place)]


def _measure(place: Place) -> Iterator[Row]:
    with ExitStack() as stack:
        server = stack.enter_context(serving(place))
        http = stack.enter_context(
            httpx.Client(base_url=server.base_url, headers=server.headers, timeout=120)
        )
        turns: dict[str, list[float]] = {}
        for number in range(_ROUNDS):
            for name, send in _SENDERS.items():
                run = f"{number}-{len(name)}-{name[:4]}"
                bodies = send(run)
                begun = time.perf_counter()
                for path, body, headers in bodies:
                    answer = http.post(path, content=body, headers=headers)
                    if answer.status_code != 200:
                        raise RuntimeError(f"{name}: {answer.status_code} {answer.text[:300]}")
                turns.setdefault(name, []).append(CALLS / (time.perf_counter() - begun))
    rates = {name: statistics.median(found) for name, found in turns.items()}
    batches = rates.pop("batches")
    for name, rate in rates.items():
        ratio = rate / batches
        yield Row(
            f"{place.database}: {CALLS:,} calls by {name}",
            f"{rate:,.0f} calls/s",
            f"{batches:,.0f} by batches",
            ratio,
            f">= {GOAL}",
            ratio >= GOAL,
        )


Request = tuple[str, bytes, dict[str, str]]


def _batches(run: str) -> list[Request]:
    bodies = []
    for start in range(0, CALLS, _BATCH):
        calls = [
            {
                "id": f"{run}-{number}",
                "conversation": f"{run}-{number % _SESSIONS}",
                "model": "gpt-4o",
                "provider": "openai",
                "usage": {"prompt_tokens": 1_000 + number, "completion_tokens": 50},
                "finish_reason": "stop",
                "latency_ms": 900,
                "started_at": "2026-05-28T20:26:40Z",
            }
            for number in range(start, start + _BATCH)
        ]
        body = json.dumps({"calls": calls}).encode()
        bodies.append(("/api/v1/calls/batch", body, {"content-type": _JSON}))
    return bodies


def _attributes(run: str, number: int) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1_000 + number,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.response.finish_reasons": "stop",
        "session.id": f"{run}-{number % _SESSIONS}",
    }


def _trace(run: str) -> str:
    return run.encode().hex()[:32].ljust(32, "0")


def _protobuf(run: str) -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add().scope_spans.add()
    for number in range(CALLS):
        span = group.spans.add()
        span.trace_id, span.span_id = bytes.fromhex(_trace(run)), (number + 1).to_bytes(8, "big")
        span.name, span.kind = "chat gpt-4o", 3
        span.start_time_unix_nano, span.end_time_unix_nano = _START, _START + 900_000_000
        for name, value in _attributes(run, number).items():
            pair = span.attributes.add()
            pair.key = name
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
    written: bytes = request.SerializeToString()
    return written


def _json(run: str) -> bytes:
    spans = [
        {
            "traceId": _trace(run),
            "spanId": f"{number + 1:016x}",
            "name": "chat gpt-4o",
            "kind": 3,
            "startTimeUnixNano": str(_START),
            "endTimeUnixNano": str(_START + 900_000_000),
            "attributes": [
                {"key": name, "value": {"intValue": str(value)}}
                if isinstance(value, int)
                else {"key": name, "value": {"stringValue": value}}
                for name, value in _attributes(run, number).items()
            ],
        }
        for number in range(CALLS)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


_PATH = "/v1/traces"
_GZIP = {"content-type": _PROTOBUF, "content-encoding": "gzip"}
_SENDERS: dict[str, Callable[[str], list[Request]]] = {
    "batches": _batches,
    "protobuf": lambda run: [(_PATH, _protobuf(run), {"content-type": _PROTOBUF})],
    "gzipped protobuf": lambda run: [(_PATH, gzip.compress(_protobuf(run)), _GZIP)],
    "JSON": lambda run: [(_PATH, _json(run), {"content-type": _JSON})],
}
