"""What exporters send and get back: both encodings, gzip, resends, limits, faults."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from helmdash.conf import Env
from helmdash.core.calls.routes import CallRoute
from helmdash.metrics import telemetry_records
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.recording.client_events import take_claude_hook
from helmdash.operations.retention.expired import forget_awaited
from helmdash.records.models import (
    AwaitedSpan,
    Call,
    CallName,
    CallPayload,
    ClientEvent,
    Conversation,
    LearnedWindow,
    Project,
)
from tests.core.telemetry.samples import LOGS, SPANS
from tests.factories import make_capture, make_key, make_project
from tests.otlp.exports import (
    JSON,
    MIB,
    PROTOBUF,
    START,
    TRACE,
    SpanOut,
    caller_of,
    logs_json,
    logs_protobuf,
    send,
    spans_json,
    spans_protobuf,
)

# Without the time, which would be another one in each worker of the tests.
pack = partial(gzip.compress, mtime=0)
BOTH = pytest.mark.parametrize("kind", [JSON, PROTOBUF])
WRITE: dict[str, Callable[..., bytes]] = {JSON: spans_json, PROTOBUF: spans_protobuf}
WRITE_LOGS: dict[str, Callable[..., bytes]] = {JSON: logs_json, PROTOBUF: logs_protobuf}
CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "session.id": "s-1"}


@pytest.fixture
def key(db: None) -> str:
    make_project()
    return make_key(name="exporter", scopes=["record"])


@BOTH
def test_every_dialect_is_stored_with_its_true_total_and_once(key: str, kind: str) -> None:
    for _ in range(2):
        for number, sample in enumerate(SPANS.values(), start=1):
            span = SpanOut(number=number, name=sample.name, attributes=sample.attributes)
            answer = send(WRITE[kind]([span], scope=sample.scope), key=key, kind=kind)
            assert answer.status == 200
            assert answer.body == (b"{}" if kind == JSON else b"")
        for sample in LOGS.values():
            body = WRITE_LOGS[kind]([sample.attributes], scope=sample.scope)
            assert send(body, key=key, path="/v1/logs", kind=kind).status == 200

    stored = dict(Call.objects.values_list("name", "prompt_tokens"))
    for number, sample in enumerate(SPANS.values(), start=1):
        assert stored.pop(f"otel:{TRACE}:{number:016x}") == sample.total
    assert list(stored.values()) == [sample.total for sample in LOGS.values()]
    assert set(Call.objects.values_list("routes", flat=True)) == {"otlp_span", "otlp_log"}
    rules = [
        usage["rule"] for usage in CallPayload.objects.values_list("usage_raw", flat=True) if usage
    ]
    assert len(rules) == len(SPANS) + len(LOGS) - 1


@BOTH
def test_a_call_is_stored_as_its_span_tells_it(key: str, kind: str) -> None:
    attributes = {
        **CALL,
        "gen_ai.system": "openai",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.input.messages": '[{"role": "user", "parts": []}]',
        "deep": {"a": [1, {"b": None}]},
    }
    spans = [SpanOut(number=3, parent=2, attributes=attributes), SpanOut(number=2, name="agent")]
    resource = {"service.name": "shop", "service.version": "1.2"}

    answer = send(WRITE[kind](spans, resource=resource), key=key, kind=kind)

    assert answer.headers["content-type"] == kind
    assert answer.headers["x-helmdash-records"] == "call=1 other=1 rejected=0"
    call = Call.objects.get()
    assert call.conversation is not None
    assert (call.conversation.name, call.generation, call.model_key) == ("s-1", 1, "openai/gpt-4o")
    assert (call.finish_reason, call.latency_ms, call.ttft_ms) == ("stop", 2000, 250)
    assert (call.client_name, call.client_version, call.caller) == ("shop", "1.2", "exporter")
    assert int(call.started_at.timestamp()) == START // 10**9
    assert (call.sent_bytes, call.sent_messages, call.level) == (31, 1, "healthy")


@BOTH
@pytest.mark.parametrize("order", [(1, 2), (2, 1), (3, 4, 1), (3, 5)])
def test_of_a_call_within_a_call_the_inner_one_stays_in_the_session_of_the_outer(
    key: str, kind: str, order: tuple[int, ...]
) -> None:
    # As LangChain around a vendor's library; each export comes to another process.
    outer = SpanOut(number=1, attributes={**CALL, "gen_ai.usage.input_tokens": 900})
    bare = {name: value for name, value in CALL.items() if name != "session.id"}
    chain = SpanOut(number=3, parent=1, name="RunnableSequence")
    inner = SpanOut(number=2, parent=3, attributes={**bare, "gen_ai.usage.input_tokens": 900})
    exports = {1: [outer], 2: [inner, chain], 3: [inner], 4: [chain], 5: [chain, outer]}

    for _ in range(2):
        for number in order:
            assert send(WRITE[kind](exports[number]), key=key, kind=kind).status == 200

    call = Call.objects.get()
    assert call.name == f"otel:{TRACE}:{inner.id}"
    if order == (1, 2):
        assert call.conversation is not None
        assert (call.conversation.name, call.conversation.generation) == ("s-1", 1)


def _no_call_is_found(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    """As of a database that goes away."""
    # The budgets are read with the moments of told windows, which are those of calls.
    if CallName._meta.db_table in sql and LearnedWindow._meta.db_table not in sql:
        raise OperationalError("the database went away")
    return execute(sql, params, many, context)


@BOTH
def test_a_session_that_a_later_span_names_is_that_of_the_calls_within(key: str, kind: str) -> None:
    bare = {name: value for name, value in CALL.items() if name != "session.id"}
    told = {**bare, "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 12}
    exports = [
        [SpanOut(number=3, parent=2, attributes={**told, "gen_ai.response.id": "resp_1"})],
        [SpanOut(number=4, parent=5, attributes={**told, "gen_ai.agent.name": "ada"})],
        [SpanOut(number=2, parent=5, name="chain")],
        [SpanOut(number=5, parent=1, attributes=told)],  # a call around both
        [SpanOut(number=1, name="agent", attributes={"session.id": "s-1"})],
    ]

    for _ in range(2):
        for spans in exports:  # each comes to another process
            body = WRITE[kind](spans)
            # An exporter that is told to come back sends the same again.
            with connection.execute_wrapper(_no_call_is_found):
                assert send(body, key=key, kind=kind).status in (200, 503)
            assert send(body, key=key, kind=kind).status == 200

    stored = Call.objects.order_by("name").values_list(
        "name", "conversation__name", "generation", "prompt_tokens", "latency_ms", "caller"
    )
    assert list(stored) == [
        (f"otel:{TRACE}:{number:016x}", talk, 1, 900, 2000, "exporter")
        for number, talk in ((3, "s-1"), (4, "s-1:ada"))
    ]
    assert [row.level for row in Conversation.objects.order_by("name")] == ["healthy", "healthy"]
    # All that they waited for has come, but for what was sent again; that waits a day.
    project = caller_of(key).project
    assert {row.around[-1] for row in AwaitedSpan.objects.all()} <= {"2", "5"}
    assert not forget_awaited(project=project, now=timezone.now() + timedelta(hours=23))
    forget_awaited(project=project, now=timezone.now() + timedelta(hours=25))
    assert not AwaitedSpan.objects.exists()
    # Another door would find it by the reply's id.
    named = CallName.objects.get(name="codex:resp_1").call_id
    assert Call.objects.get(pk=named).name == f"otel:{TRACE}:{3:016x}"


def test_what_lies_around_a_call_that_came_by_another_door_is_none(key: str) -> None:
    told = {**CALL, "gen_ai.response.id": "resp_9", "gen_ai.usage.input_tokens": 900}
    project = caller_of(key).project
    first = make_capture(
        id="call_1",
        conversation="s-1",
        also_known=("codex:resp_9",),
        routes=(CallRoute.GATEWAY,),
    )
    record_calls(project=project, captures=[first], caller="owner", now=timezone.now())
    around = {**CALL, "gen_ai.usage.input_tokens": 900}

    send(spans_json([SpanOut(number=2, parent=1, attributes=told)]), key=key)
    send(spans_json([SpanOut(number=1, attributes=around)]), key=key)

    call = Call.objects.get()
    assert (call.name, call.routes) == ("call_1", "gateway otlp_span")


@BOTH
def test_ids_that_are_none_are_rejected_and_the_others_stored(key: str, kind: str) -> None:
    good = SpanOut(number=5, attributes=CALL)
    zero = SpanOut(number=0, attributes=CALL)
    short = SpanOut(number=6, attributes=CALL, trace="ab" * 4)

    answer = send(WRITE[kind]([good, zero, short]), key=key, kind=kind)

    assert answer.status == 200
    if kind == JSON:
        partial = answer.told["partialSuccess"]
        rejected, why = int(partial["rejectedSpans"]), partial["errorMessage"]
    else:
        message: Any = answer.parsed(of="traces")
        rejected = message.partial_success.rejected_spans
        why = message.partial_success.error_message
    assert rejected == 2
    assert "trace or span id" in why
    assert Call.objects.get().name == f"otel:{TRACE}:{good.id}"


def test_gzip_is_taken_and_what_no_body_says_is_nothing(key: str) -> None:
    body = spans_json([SpanOut(attributes=CALL)])
    half = len(body) // 2
    members = pack(body[:half]) + pack(body[half:])

    for packed in (pack(body), members):
        answer = send(packed, key=key, content_encoding="gzip")
        assert (answer.status, answer.body) == (200, b"{}")
    for kind, path in ((PROTOBUF, "/v1/traces"), (PROTOBUF, "/v1/logs"), (PROTOBUF, "/v1/metrics")):
        assert send(b"", key=key, kind=kind, path=path).status == 200
    assert send(b"{}", key=key, path="/v1/metrics").status == 200

    assert Call.objects.count() == 1


@pytest.mark.one_database
def test_an_export_of_sixty_mebibytes_is_taken_by_default(key: str) -> None:
    body = spans_json([SpanOut(attributes=CALL)]) + b" " * (60 * MIB)
    memory = Env.model_fields["body_memory_bytes"].default
    # However little it could be packed.
    packed, unpackable = pack(body), pack(body, compresslevel=0)

    for sent, coding in ((body, ""), (packed, "gzip"), (unpackable, "gzip")):
        answer = send(sent, key=key, all_bytes=memory, content_encoding=coding)
        assert (answer.status, answer.body) == (200, b"{}")

    larger = send(pack(b" " * 64 * MIB + b"{}"), key=key, all_bytes=memory, **GZIP)
    assert (larger.status, larger.told["message"]) == (
        413,
        f"A body may have at most {64 * MIB} bytes here. Send it in smaller parts.",
    )


def test_data_points_are_only_counted(key: str) -> None:
    points = {"dataPoints": [{"asInt": "1"}, {"asInt": "2"}]}
    metrics = [{"name": "claude_code.token.usage", "sum": points}, {"name": "x", "gauge": None}]
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}
    counter = telemetry_records.labels("metrics", "other")
    before = counter._value.get()

    answer = send(json.dumps(body).encode(), key=key, path="/v1/metrics")

    assert (answer.status, answer.body) == (200, b"{}")
    assert counter._value.get() == before + 2
    assert not Call.objects.exists()


def _deep(levels: int) -> bytes:
    value = '{"arrayValue":{"values":[' * levels + "{}" + "]}}" * levels
    span = '{"traceId":"%s","spanId":"%s","attributes":[{"key":"a","value":%s}]}'
    span %= (TRACE, "1" * 16, value)
    return ('{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}' % span).encode()  # noqa: UP031


def _sized(tag: int, content: bytes) -> bytes:
    """A member of a protobuf message that has a length."""
    size, length = len(content), b""
    while size > 127:
        size, length = size >> 7, length + bytes([size & 127 | 128])
    return bytes([tag]) + length + bytes([size]) + content


BOMB = pack(b" " * (6 * MIB))
# Two bytes each, on each level: resources, records, data points of a gauge.
RESOURCES = b"\x0a\x00" * 300_001
RECORDS = _sized(0x0A, _sized(0x12, b"\x12\x00" * 300_001))
POINTS = _sized(0x0A, _sized(0x12, _sized(0x12, _sized(0x2A, b"\x0a\x00" * 100_001))))
JSON_POINTS = (
    b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[%s1]}}]}]}]}'
)
MANY = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s{}]}]}]}' % (b"{}," * 100_000)
LOGS_PATH = {"path": "/v1/logs"}
GZIP: dict[str, Any] = {"content_encoding": "gzip"}


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "how", "status", "sentence"),
    [
        (b"{}", {"key": "hd_wrong"}, 401, "unknown or revoked"),
        (b"{}", {"method": "GET"}, 405, "Use POST"),
        (b"{}", {"kind": "text/plain"}, 415, "application/x-protobuf"),
        (b"{}", {"content_encoding": "zstd"}, 415, "gzip"),
        (b"{}", {"kind": PROTOBUF}, 400, "ExportTraceServiceRequest"),
        (b"\x0a\xff", {"kind": PROTOBUF, "path": "/v1/logs"}, 400, "ExportLogsServiceRequest"),
        (b"{", {}, 400, "not valid JSON"),
        (b"[]", {}, 400, "body: must be an object"),
        (b'{"resourceSpans": {}}', {}, 400, "resourceSpans: must be a list of objects"),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[1]}]}]}', {}, 400, "[0].spans: must be"),
        (b'{"resourceLogs":[{"scopeLogs":[3]}]}', LOGS_PATH, 400, "resourceLogs[0].scopeLogs"),
        (_deep(5000), {}, 400, "nested more than 200 levels deep"),
        (b"{}", GZIP, 400, "not valid gzip"),
        (pack(b"{}")[:-6], GZIP, 400, "breaks off"),
        (pack(b"{}") + b"xx", GZIP, 400, "not valid gzip"),
        (b" " * 5 * MIB, {}, 413, "at most 4194304 bytes"),
        (BOMB, GZIP, 413, "at most 4194304 bytes"),
        (BOMB[:2000], GZIP, 400, "breaks off"),
        (b'{"a":[%s1]}' % (b"1," * 150_001), {"path": "/v1/metrics"}, 200, ""),
        (MANY, {}, 413, "at most 100000 records"),
        (RESOURCES, {"kind": PROTOBUF}, 413, "at most 100000 records"),
        (RECORDS, {"kind": PROTOBUF, **LOGS_PATH}, 413, "at most 100000 records"),
        (POINTS, {"kind": PROTOBUF, "path": "/v1/metrics"}, 413, "at most 100000 records"),
        (JSON_POINTS % (b"1," * 100_000), {"path": "/v1/metrics"}, 413, "at most 100000 records"),
        (b"\x0b\x0c", {"kind": PROTOBUF}, 400, "ExportTraceServiceRequest"),
        (pack(b" ") * 100 + pack(b"{}"), GZIP, 400, "at most 100 members"),
        (pack(b"{}") + pack(b""), GZIP, 400, "empty member"),
    ],
    ids=lambda told: told if isinstance(told, str) else "",
)  # fmt: skip
def test_what_is_no_export_is_told_so_and_never_fails(
    key: str, body: bytes, how: dict[str, Any], status: int, sentence: str
) -> None:
    answer = send(body, **{"key": key, **how})

    assert answer.status == status, answer.body
    assert sentence in answer.body.decode("utf-8", "replace")
    kind = how.get("kind", JSON)
    assert answer.headers["content-type"] == (kind if kind == PROTOBUF else JSON)
    if status != 200 and kind != PROTOBUF:
        assert set(answer.told) == {"code", "message"}
    assert not Call.objects.exists()


def _listed(levels: int) -> dict[str, Any]:
    told: Any = "end"
    for _ in range(levels):
        told = [told]
    return {"a": 1, "b": told}


# What UTF-8 never has, in place of a text that is found in the body.
NO_TEXT, MARKED = b"\xff\xfe", "QQ"


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "path", "sentence"),
    [
        (
            spans_protobuf([SpanOut(), SpanOut(number=2, name=MARKED)]),
            "/v1/traces",
            "resource_spans[0].scope_spans[0].spans[1].name: is not UTF-8",
        ),
        (
            logs_protobuf([{"a": 1, MARKED: 2}], scope=""),
            "/v1/logs",
            "resource_logs[0].scope_logs[0].log_records[0].attributes[1].key: is not UTF-8",
        ),
        (
            logs_protobuf([{"a": [1, {"b": MARKED}]}], scope=""),
            "/v1/logs",
            "attributes[0].value.array_value.values[1].kvlist_value.values[0].value.string_value: ",
        ),
        (
            logs_protobuf([_listed(48)], scope=""),
            "/v1/logs",
            "log_records[0].attributes[1].value.array_value",
        ),
        (logs_protobuf([_listed(48)], scope=""), "/v1/logs", ": lies more than 100 messages deep"),
        (spans_protobuf([SpanOut()])[:-3], "/v1/traces", "is not a protobuf message"),
        (b"\x0a\x02\x0b" + NO_TEXT, "/v1/logs", "is not a protobuf message"),
    ],
    ids=["name", "key", "value", "place", "depth", "cut", "group"],
)
def test_what_no_reader_of_protobuf_takes_is_named(
    key: str, body: bytes, path: str, sentence: str
) -> None:
    broken = body.replace(MARKED.encode(), NO_TEXT)
    answer = send(broken, key=key, kind=PROTOBUF, path=path)

    assert answer.status == 400
    assert sentence in answer.body.decode("utf-8", "replace")
    assert len(answer.body) < 450


def test_lists_as_deep_as_protobuf_goes_are_taken(key: str) -> None:
    answer = send(logs_protobuf([_listed(47)], scope=""), key=key, kind=PROTOBUF, path="/v1/logs")

    assert (answer.status, answer.body) == (200, b"")


def test_who_exports_with_a_wrong_key_is_told_of_on_the_page_connect(key: str) -> None:
    agent = "OTel-OTLP-Exporter-JavaScript/0.203.0"

    refused = send(b"{}", key="hd_wrong", path="/v1/logs", user_agent=agent)
    taken = send(b"{}", key=key, path="/v1/logs", user_agent=agent)

    assert refused.refused_keys == [f"POST /v1/logs {agent}"]
    assert taken.refused_keys == []


# As instrumentations and agents tell of a call that failed: in the provider's own words.
_QUOTED = "Invalid value: 'my diagnosis is secret'"
_ERRORS: dict[str, tuple[str, bytes]] = {
    "a span": (
        "/v1/traces",
        spans_json(
            [SpanOut(attributes={**CALL, "error.type": "invalid", "error.message": _QUOTED})]
        ),
    ),
    "Claude Code": (
        "/v1/logs",
        logs_json(
            [{"event.name": "api_error", "model": "m", "error": _QUOTED, "status_code": "400"}],
            scope="com.anthropic.claude_code.events",
        ),
    ),
    "Codex": (
        "/v1/logs",
        logs_json(
            [
                {
                    "event.name": "codex.api_request",
                    "model": "m",
                    "error.message": _QUOTED,
                    "http.response.status_code": 400,
                }
            ],
            scope="codex_otel.log_only",
        ),
    ),
    "Gemini": (
        "/v1/logs",
        logs_json(
            [{"event.name": "gemini_cli.api_error", "model": "m", "error": _QUOTED}],
            scope="gemini-cli",
        ),
    ),
}


@pytest.mark.parametrize("who", _ERRORS)
@pytest.mark.parametrize("payload", ["off", "full"])
def test_what_an_error_quotes_is_kept_where_texts_are(key: str, who: str, payload: str) -> None:
    Project.objects.update(payload=payload)
    path, body = _ERRORS[who]

    answer = send(body, key=key, path=path)

    assert answer.status == 200, answer.body
    call = Call.objects.get()
    assert call.status == "error"
    said = f"{call.error_message} {call.error_code} {call.cause_detail} {call.finish_reason_raw}"
    assert ("diagnosis" in said) is (payload == "full")
    assert bool(call.error_message)


def test_a_compaction_in_the_log_opens_a_round_and_one_that_failed_is_a_refusal(key: str) -> None:
    def told(name: str, sequence: int, **more: Any) -> dict[str, Any]:
        common = {"event.name": name, "session.id": "s-2", "event.sequence": sequence}
        return common | {"event.timestamp": f"2026-06-01T10:00:{sequence:02}Z"} | more

    def call(sequence: int, tokens: int) -> dict[str, Any]:
        return told("api_request", sequence, model="gpt-4o", input_tokens=str(tokens))

    exports = [
        [call(1, 90_000), told("compaction", 2, trigger="auto", success="true")],
        [call(3, 9_000)],
        [told("compaction", 4, trigger="auto", success="false", error="too_few_groups")],
        [told("compaction", 5, trigger="manual", success="false")],
    ]
    for export in exports + exports:
        body = json.loads(logs_json(export, scope="com.anthropic.claude_code.events"))
        for record in body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
            del record["observedTimeUnixNano"]  # Codex and others leave it to the attribute
        assert send(json.dumps(body).encode(), key=key, path="/v1/logs").status == 200

    conversation = Conversation.objects.get()
    assert (conversation.generation, conversation.round_number) == (2, 2)
    assert conversation.client_refusal == "its compaction failed: too_few_groups"
    kinds = ClientEvent.objects.order_by("at").values_list("kind", flat=True)
    assert list(kinds) == ["client_compaction", "client_refusal"]


def _compactions(sequences: Sequence[int], *, session: str = "s-3", time: int = START) -> bytes:
    told = [
        {"event.name": "compaction", "session.id": session, "event.sequence": sequence}
        for sequence in sequences
    ]
    body = logs_json(told, scope="com.anthropic.claude_code.events")
    return body.replace(str(START).encode(), str(time).encode())


def test_events_of_clients_are_kept_in_one_go_and_no_more_than_a_thousand(
    key: str, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    send(spans_json([SpanOut(attributes={**CALL, "session.id": "s-3"})]), key=key)
    twice = [*range(600), *range(600)]

    with django_assert_max_num_queries(30):
        first = send(_compactions(twice), key=key, path="/v1/logs")
    again = send(_compactions(range(600)), key=key, path="/v1/logs")
    full = send(_compactions(range(600, 1_010)), key=key, path="/v1/logs")
    at_once = send(_compactions(range(1_003), session="s-4"), key=key, path="/v1/logs")

    assert (first.body, again.body) == (b"{}", b"{}")
    assert full.told["partialSuccess"]["rejectedLogRecords"] == "10"
    assert "at most 1000 events" in full.told["partialSuccess"]["errorMessage"]
    assert full.headers["x-helmdash-records"] == "call=0 other=400 rejected=10"
    assert at_once.told["partialSuccess"]["rejectedLogRecords"] == "3"
    hook = {"hook_event_name": "PostCompact", "session_id": "s-3", "trigger": "auto"}
    project = caller_of(key).project
    assert not take_claude_hook(project=project, body=hook, now=timezone.now()).kept
    assert ClientEvent.objects.count() == 1_000


@pytest.mark.parametrize("days", [-40_000, 2, 20_000])
def test_a_time_that_no_good_clock_tells_is_taken_as_now(key: str, days: int) -> None:
    now = timezone.now()
    wrong = max(int(now.timestamp()) + days * 86_400, 1) * 10**9
    body = spans_json([SpanOut(attributes={**CALL, "session.id": "s-3"})])

    answer = send(body.replace(str(START).encode(), str(wrong).encode()), key=key)
    send(_compactions([1], time=wrong), key=key, path="/v1/logs")

    assert answer.body == b"{}"
    times = [Call.objects.get().started_at, ClientEvent.objects.get().at]
    assert all(now <= at <= timezone.now() for at in times)


@pytest.mark.one_database
def test_values_that_nobody_expects_are_no_failure(key: str) -> None:
    odd: list[dict[str, Any]] = [
        {"traceId": TRACE, "spanId": "1" * 16, "name": 3, "kind": "x", "status": 4, "events": 5},
        {"traceId": 5, "spanId": []},
        {"traceId": TRACE, "spanId": "2" * 16, "startTimeUnixNano": "x", "endTimeUnixNano": 1e40},
        {"traceId": TRACE, "spanId": "3" * 16, "attributes": [1, {"key": 2}, {"key": "a"}]},
    ]
    wild: dict[str, Any] = {
        **CALL,
        "session.id": "a/b\ud800",
        "gen_ai.request.model": "m\x00\x07" + "x" * 9999,
        "gen_ai.usage.input_tokens": 2**63 - 1,
        "gen_ai.usage.output_tokens": -4,
        "gen_ai.response.finish_reasons": '["\\ud800"]',
        "http.response.status_code": 7,
        "error.type": "e" * 9999,
        "exception": 1,
        "app.version": "v" * 99,
    }
    wild["session.id"] = "a/b"
    odd.append(
        {
            "traceId": TRACE,
            "spanId": "4" * 16,
            "startTimeUnixNano": "18446744073709551615",
            "endTimeUnixNano": 1,
            "parentSpanId": "4" * 16,
            "attributes": [
                {"key": name, "value": {"stringValue": value}}
                if isinstance(value, str)
                else {"key": name, "value": {"intValue": value}}
                for name, value in wild.items()
            ],
            "status": {"code": 2, "message": "\x00" + "m" * 9999},
            "events": [{"name": "exception", "attributes": None}, 3],
        }
    )
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": odd}]}]}).encode()

    answer = send(body, key=key)

    assert answer.status == 200, answer.body
    assert answer.told["partialSuccess"]["rejectedSpans"] == "1"
    call = Call.objects.get()
    assert call.conversation is not None
    assert (call.conversation.name, call.status, call.prompt_tokens) == ("a=2Fb", "error", None)
    assert len(call.model) == 255


@pytest.mark.one_database
@pytest.mark.parametrize("name", ["gen_ai.operation.name", "llm.request.type"])
@pytest.mark.parametrize(
    "value",
    [
        {"arrayValue": {"values": [{"stringValue": "chat"}]}},
        {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": 1}}]}},
    ],
)
def test_a_list_where_a_word_is_due_loses_no_other_span(
    key: str, name: str, value: dict[str, Any]
) -> None:
    """An answer of 500 has the exporter drop the whole batch."""
    odd = {
        "traceId": TRACE,
        "spanId": "2" * 16,
        "attributes": [{"key": name, "value": value}],
    }
    request = json.loads(spans_json([SpanOut(attributes=CALL)]))
    request["resourceSpans"][0]["scopeSpans"][0]["spans"].append(odd)

    answer = send(json.dumps(request).encode(), key=key)

    assert (answer.status, Call.objects.count()) == (200, 1), answer.body


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("half", "stored"),
    [
        ("\\ud83d", "\N{REPLACEMENT CHARACTER}"),
        ("\\udc4d", "\N{REPLACEMENT CHARACTER}"),
        ("\\uD83D\\uD83D\\uDC4D", "\N{REPLACEMENT CHARACTER}\N{THUMBS UP SIGN}"),
        ("\\\\\\ud83d", "\\\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_half_a_character_in_a_text_loses_no_span(key: str, half: str, stored: str) -> None:
    """JavaScript cuts texts within an emoji, and writes the half that is left as an escape."""
    told = {**CALL, "gen_ai.request.model": "openai/cut-HERE"}
    body = spans_json([SpanOut(attributes=told)]).replace(b"HERE", half.encode())

    answer = send(body, key=key)

    assert (answer.status, answer.told.get("partialSuccess")) == (200, None), answer.body
    assert Call.objects.get().model == f"openai/cut-{stored}"


def test_a_key_may_be_percent_encoded(key: str) -> None:
    body = spans_json([SpanOut(attributes=CALL)])

    assert send(body, key=key, authorization=f"Bearer%20{key}").status == 200


def test_a_key_without_the_scope_records_nothing(key: str) -> None:
    reader = make_key(name="reader", scopes=["read"])

    answer = send(spans_json([SpanOut(attributes=CALL)]), key=reader)

    assert answer.status == 403
    assert answer.told == {"code": 7, "message": "The key reader lacks the scope record."}


def test_a_call_around_calls_is_left_out(key: str) -> None:
    spans = [SpanOut(number=9, attributes=CALL), SpanOut(number=10, parent=9, attributes=CALL)]

    send(spans_protobuf(spans), key=key, kind=PROTOBUF)

    assert Call.objects.get().name == f"otel:{TRACE}:{10:016x}"
