"""Spans to a receiver of OTLP/HTTP, in protobuf and packed: what every receiver takes.

Source: OTLP 1.x (docs/sources.md): a 200 may say that some were rejected; 429, 502, 503 and 504 are
to be tried again, after `Retry-After` where that is told; anything else will not change.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from helmdash.core.telemetry.judged import JudgedSpan, Value
from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.protocols import HttpRequest
from helmdash.upstream.client import Fetched, UpstreamClient
from helmdash.upstream.retries import asked_seconds

_PATH = "/v1/traces"
_CLIENT, _OK, _ERROR = 3, 1, 2  # SPAN_KIND_CLIENT; STATUS_CODE_OK and _ERROR
_MOST_BYTES = 1024 * 1024  # of an answer
_SECONDS = 30.0
_REFUSED = frozenset({400, 413, 415, 422})
_AGAIN = frozenset({429, 502, 503, 504})
# Langfuse shows such spans at once, and others after minutes.
_LANGFUSE = ("/api/public/otel", ("x-langfuse-ingestion-version", "4"))
_WORDS_CHARS, _WORDS_BYTES = 200, 4000
_SECRET_CHARS = 6  # shorter words hide nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Where spans go. `headers` hold its key: never log them."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a receiver answered. problem "": it took them, but for `rejected`.

    is_refused: the same spans will not be taken another time either; fewer of them may be.
    """

    rejected: int = 0
    problem: str = ""
    is_refused: bool = False
    retry_after_s: float | None = None


def address_of(url: str) -> str:
    """The whole address of a receiver: /v1/traces is put behind a base."""
    bare = url.strip().rstrip("/")
    return bare if bare.endswith(_PATH) else f"{bare}{_PATH}"


async def send_spans(
    client: UpstreamClient, receiver: Receiver, spans: Sequence[JudgedSpan], *, version: str
) -> Sent:
    """Send spans as one export. Raises UpstreamFailed where no answer came."""
    address = address_of(receiver.url)
    parts = urlsplit(address)
    endpoint = Endpoint(
        name="export",
        kind=ProviderKind.OPENAI,
        base_url=address.removesuffix(_PATH),
        allow_private=receiver.allow_private,
        read_timeout_s=_SECONDS,
    )
    headers = [("content-type", "application/x-protobuf"), ("content-encoding", "gzip")]
    if _LANGFUSE[0] in parts.path:
        headers.append(_LANGFUSE[1])
    body = gzip.compress(encode(spans, version=version), compresslevel=5, mtime=0)
    request = HttpRequest(path=_PATH, headers=(*headers, *receiver.headers), body=body)
    fetched = await client.fetch(endpoint, request, limit_bytes=_MOST_BYTES, max_attempts=1)
    return _read(fetched, secrets=[value for _, value in receiver.headers])


def encode(spans: Sequence[JudgedSpan], *, version: str) -> bytes:
    """An ExportTraceServiceRequest."""
    request = ExportTraceServiceRequest()
    about = request.resource_spans.add()
    _add(about.resource.attributes, {"service.name": "helmdash", "service.version": version})
    scope = about.scope_spans.add()
    scope.scope.name, scope.scope.version = "helmdash", version
    for each in spans:
        span = scope.spans.add()
        span.trace_id, span.span_id = bytes.fromhex(each.trace_id), bytes.fromhex(each.span_id)
        span.parent_span_id = bytes.fromhex(each.parent_id)
        span.name, span.kind = each.name, _CLIENT
        span.start_time_unix_nano = _nanoseconds(each.started_at)
        span.end_time_unix_nano = _nanoseconds(each.ended_at)
        span.status.code = _ERROR if each.is_error else _OK
        span.status.message = each.message if each.is_error else ""
        _add(span.attributes, each.attributes)
    return bytes(request.SerializeToString())


def _add(target: Any, attributes: Mapping[str, Value]) -> None:
    for name, value in attributes.items():
        pair = target.add()
        pair.key = name
        match value:
            case bool():
                pair.value.bool_value = value
            case int():
                pair.value.int_value = value
            case float():
                pair.value.double_value = value
            case str():
                pair.value.string_value = value
            case tuple():
                for each in value:
                    pair.value.array_value.values.add().string_value = each


def _read(fetched: Fetched, *, secrets: Sequence[str]) -> Sent:
    """secrets: what a receiver may repeat, and no page has to show."""
    status = fetched.status
    if 200 <= status < 300:
        answer = ExportTraceServiceResponse()
        try:
            answer.ParseFromString(fetched.body)
        except DecodeError:
            return Sent()  # an answer in JSON, or none: it took them
        return Sent(rejected=max(int(answer.partial_success.rejected_spans), 0))
    words = fetched.body[:_WORDS_BYTES].decode("utf-8", "replace")
    for secret in (part for each in secrets for part in each.split() if len(part) >= _SECRET_CHARS):
        words = words.replace(secret, "[hidden]")
    words = words[:_WORDS_CHARS]
    plain = " ".join("".join(char if char.isprintable() else " " for char in words).split())
    return Sent(
        problem=f"{status} {plain}".strip(),
        is_refused=status in _REFUSED,
        retry_after_s=asked_seconds(fetched.headers) if status in _AGAIN else None,
    )


def _nanoseconds(at: datetime) -> int:
    whole = int(at.timestamp())
    return whole * 1_000_000_000 + at.microsecond * 1000
