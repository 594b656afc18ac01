"""What a protobuf body would become, counted before it is read."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from helmdash.otlp.wire import BrokenWire, count_messages, whole_table
from tests.otlp.exports import SpanOut, spans_protobuf

SPANS = whole_table(ExportTraceServiceRequest.DESCRIPTOR)
METRICS = whole_table(ExportMetricsServiceRequest.DESCRIPTOR)


def test_every_message_of_an_export_is_counted_on_every_level() -> None:
    # Resource and scope with their groups are 4; each span and its status 1 each where told, an
    # attribute 2, and what lies in lists and objects likewise.
    spans = [SpanOut(number=n, attributes={"a": 1, "b": [1, 2], "c": {"d": "e"}}) for n in (1, 2)]
    body = spans_protobuf(spans, scope="s", resource={"service.name": "x"})

    assert count_messages(body, SPANS, 1_000) == 4 + 2 + 2 * (1 + 2 + (2 + 1 + 2) + (2 + 1 + 2))
    assert count_messages(body, SPANS, 5) == 6


def test_packed_numbers_are_counted_each() -> None:
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
    point = metric.exponential_histogram.data_points.add()
    point.positive.bucket_counts.extend([1] * 50)

    assert count_messages(request.SerializeToString(), METRICS, 1_000) == 6 + 50


@pytest.mark.parametrize(
    "body",
    [b"\x0a", b"\x0a\x05\x00", b"\x0a\xff", b"\x08\xff", b"\x09\x00", b"\x0b\x0c", b"\x80" * 20],
)
def test_what_is_no_message_is_told_so(body: bytes) -> None:
    with pytest.raises(BrokenWire):
        count_messages(body, SPANS, 1_000)


@pytest.mark.parametrize("most", [10, 4_000_000])
def test_members_that_are_not_counted_are_bounded_by_those_that_are(most: int) -> None:
    """However many messages may come: a minute's walk through a body of nothing has no use."""
    unknown = b"\x78\x00" * 2_000_001

    assert count_messages(unknown, SPANS, most) == most + 1


def test_messages_may_have_the_members_of_their_own() -> None:
    # A group of spans with 700,000 empty ones, each followed by two members that nobody knows.
    spans = b"\x12\x00\x78\x00\x78\x00" * 700_000
    size = b"".join(bytes([len(spans) >> shift & 127 | 128]) for shift in (0, 7, 14))
    scope = b"\x12" + size + bytes([len(spans) >> 21]) + spans
    outer = b"".join(bytes([len(scope) >> shift & 127 | 128]) for shift in (0, 7, 14))

    assert (
        count_messages(b"\x0a" + outer + bytes([len(scope) >> 21]) + scope, SPANS, 4_000_000)
        == 700_002
    )
