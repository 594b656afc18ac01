"""The true total of a prompt in every dialect, what is a call, and where it belongs."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.core.calls.finish import normalise_finish_reason
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.usage import normalise_usage
from helmdash.core.telemetry.logs import call_of, calls_of
from helmdash.core.telemetry.nesting import innermost
from helmdash.core.telemetry.spans import above_of, around_of, capture_of, is_call
from helmdash.core.telemetry.values import Exporter, LogRecord, Span
from tests.core.telemetry.samples import LOGS, SPANS, Sample

TRACE = "0af7651916cd43dd8448eb211c80319c"
CANCELLED = "asyncio.CancelledError"
START = 1_780_000_000_000_000_000


def _span(told: dict[str, Any], **over: Any) -> Span:
    given: dict[str, Any] = {
        "source": Exporter(),
        "trace_id": TRACE,
        "span_id": "00f067aa0ba902b7",
        "is_client": True,
        "start_ns": START,
        "end_ns": START + 2_000_000_000,
        "attributes": told,
    }
    return Span(**(given | over))


def _log(sample: Sample) -> LogRecord:
    return LogRecord(
        source=Exporter(scope=sample.scope),
        name=sample.name,
        time_ns=START,
        attributes=sample.attributes,
    )


@pytest.mark.parametrize("name", SPANS)
def test_a_spans_prompt_is_the_true_total(name: str) -> None:
    sample = SPANS[name]
    span = _span(sample.attributes, name=sample.name, source=Exporter(sample.scope))

    capture = capture_of(span)

    assert is_call(span)
    assert normalise_usage(capture.usage).prompt_tokens == sample.total
    if sample.rule:
        assert capture.usage is not None
        assert capture.usage["rule"] == sample.rule
    assert capture.latency_ms == 2_000


@pytest.mark.parametrize("name", LOGS)
def test_a_log_records_prompt_is_the_true_total(name: str) -> None:
    sample = LOGS[name]
    capture = call_of(_log(sample))

    assert capture is not None
    assert normalise_usage(capture.usage).prompt_tokens == sample.total
    assert capture.usage is not None
    assert capture.usage["rule"] == sample.rule
    assert capture.conversation in ("s-1", "t-1", "g-1")
    assert capture.client_name == name.replace(" ", "-")
    assert capture.started_at is not None
    again = call_of(_log(sample))
    assert again is not None
    assert again.id == capture.id


def test_thoughts_are_part_of_the_completion_and_the_last_finish_reason_counts() -> None:
    capture = call_of(_log(LOGS["gemini cli"]))

    assert capture is not None
    assert normalise_usage(capture.usage).completion_tokens == 70
    assert normalise_finish_reason(capture.finish_reason) == "stop"


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("embeddings x", {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "x"}),
        ("invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "x"}),
        ("ai.streamText", {"ai.model.id": "x", "gen_ai.request.model": "x"}),
        ("agent", {"openinference.span.kind": "AGENT", "gen_ai.operation.name": "chat"}),
        ("chain", {"langfuse.observation.type": "span", "gen_ai.request.model": "x"}),
        ("flow", {"traceloop.span.kind": "workflow", "gen_ai.request.model": "x"}),
        ("rerank", {"llm.request.type": "rerank", "gen_ai.request.model": "x"}),
        ("run", {"mlflow.spanType": '"AGENT"', "gen_ai.request.model": "x"}),
        ("session_task.turn", {"gen_ai.usage.input_tokens": 5, "thread.id": "t"}),
        ("GET /", {"http.request.method": "GET"}),
        ("claude_code.tool", {"span.type": "tool", "session.id": "s"}),
    ],
)
def test_sums_and_what_asks_no_model_are_no_calls(name: str, attributes: dict[str, Any]) -> None:
    assert not is_call(_span(attributes, name=name, is_client=name != "session_task.turn"))


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [
        ("com.anthropic.claude_code.events", {"event.name": "compaction", "session.id": "s"}),
        ("com.anthropic.claude_code.events", {"event.name": "api_retries_exhausted"}),
        ("codex", {"event.name": "codex.sse_event", "event.kind": "response.completed"}),
        ("codex", {"event.name": "codex.api_request", "http.response.status_code": 200}),
        ("", {"event.name": "gen_ai.client.inference.operation.details"}),
        ("", {"event.name": 3, "model": "x"}),
        ("", {}),
    ],
)
def test_events_around_calls_are_no_calls(scope: str, attributes: dict[str, Any]) -> None:
    assert call_of(LogRecord(source=Exporter(scope), time_ns=START, attributes=attributes)) is None


@pytest.mark.parametrize(
    ("told", "status", "code", "http_status"),
    [
        ({"error": True, "attributes": {"error.type": "429"}}, "error", "429", None),
        ({"error": True, "exception": {"exception.type": CANCELLED}}, "cancelled", CANCELLED, None),
        ({"attributes": {"error.type": "AbortError"}}, "cancelled", "AbortError", None),
        ({"attributes": {"gen_ai.response.finish_reasons": ["error"]}}, "error", None, None),
        ({"attributes": {"success": False, "status_code": "529"}}, "error", None, 529),
        ({"attributes": {"http.response.status_code": 200}}, "success", None, 200),
        ({"attributes": {"http.response.status_code": 99_999}}, "success", None, None),
    ],
)  # fmt: skip
def test_errors_and_cancelled_calls_are_calls(
    told: dict[str, Any], status: str, code: str | None, http_status: int | None
) -> None:
    capture = capture_of(_span({}, **told))

    assert (capture.status, capture.error_code, capture.http_status) == (status, code, http_status)
    assert capture.usage is None


@pytest.mark.parametrize(
    ("attributes", "conversation", "parent", "lane", "purpose"),
    [
        ({"query_source": "repl_main_thread:x"}, "s", None, Lane.MAIN, "chat"),
        ({"query_source": "sdk"}, "s", None, Lane.MAIN, "chat"),
        ({"query_source": "compact"}, "s", None, Lane.SIDE, "compaction"),
        ({"query_source": "generate_session_title"}, "s", None, Lane.SIDE, "title"),
        ({"query_source": "hook_agent"}, "s", None, Lane.SIDE, "auxiliary"),
        ({"query_source": "agent:builtin:Explore"}, "s:agent:builtin:Explore", "s", None, "chat"),
        ({"query_source": "agent:x", "agent_id": "a1"}, "s:a1", "s", Lane.MAIN, "chat"),
        ({"agent_id": "a2", "parent_agent_id": "a1"}, "s:a2", "s:a1", Lane.MAIN, "chat"),
    ],
)
def test_where_a_call_of_claude_code_belongs(
    attributes: dict[str, Any],
    conversation: str,
    parent: str | None,
    lane: Lane | None,
    purpose: str,
) -> None:
    told = {"event.name": "api_request", "session.id": "s", "model": "m", **attributes}
    source = Exporter("com.anthropic.claude_code.events")
    log = call_of(LogRecord(source=source, time_ns=START, attributes=told))
    span = capture_of(_span({**told, "span.type": "llm_request"}, source=source))

    for capture in (log, span):
        assert capture is not None
        found = (capture.conversation, capture.parent, capture.lane, capture.purpose)
        assert found == (conversation, parent, lane, purpose)


def test_a_session_stands_on_the_span_above_it_or_on_the_resource() -> None:
    above = _span({"session.id": "above"}, span_id="1" * 16)
    resource = Exporter(resource={"gen_ai.conversation.id": "res", "service.name": "My-App"})
    call = {"gen_ai.operation.name": "chat"}

    assert capture_of(_span({**call, "thread.id": "own"}), [above]).conversation == "own"
    assert capture_of(_span(call, source=resource), [above]).conversation == "above"
    assert capture_of(_span(call, source=resource)).conversation == "res"
    assert capture_of(_span(call, source=resource)).client_name == "my-app"
    agent = capture_of(_span({**call, "session.id": "s", "gen_ai.agent.name": "a b"}))
    assert (agent.conversation, agent.parent) == ("s:a=20b", "s")


def test_calls_of_an_agent_that_another_one_runs_are_a_sub_agents() -> None:
    run = {"gen_ai.operation.name": "invoke_agent"}
    root = _span({**run, "gen_ai.agent.name": "main", "session.id": "s"})
    tool = _span({"gen_ai.operation.name": "execute_tool"})
    named, nameless = _span({**run, "gen_ai.agent.id": "a1"}), _span(run, name="invoke_agent Ada")
    call = _span({"gen_ai.operation.name": "chat"})

    for above, place in (
        ([root], ("s", None)),
        ([tool, root], ("s", None)),
        ([named, tool, root], ("s:a1", "s")),
        ([nameless, tool, root], ("s:Ada", "s")),
    ):
        capture = capture_of(call, above)
        assert (capture.conversation, capture.parent) == place


def test_texts_that_are_written_as_json_have_no_quotes() -> None:
    told = {
        "mlflow.spanType": '"LLM"',
        "mlflow.llm.model": '"gpt-4o"',
        "mlflow.llm.provider": '"openai"',
        "mlflow.trace.session": '"s"',
    }

    capture = capture_of(_span(told))

    assert (capture.model, capture.provider, capture.conversation) == ("gpt-4o", "openai", "s")


def test_the_same_call_has_one_id_in_log_and_span() -> None:
    told = {"session.id": "s", "request_id": "call_9", "model": "claude-opus-4-8[1m]"}
    source = Exporter("com.anthropic.claude_code.events")
    log = call_of(
        LogRecord(source=source, time_ns=START, attributes={"event.name": "api_error", **told})
    )
    span = capture_of(_span({**told, "span.type": "llm_request"}, source=source))

    assert log is not None
    assert log.id == span.id == "anthropic:call_9"
    assert log.status == "error"
    for told_by in (log, span):
        assert (told_by.model, told_by.client_window) == ("claude-opus-4-8", 1_000_000)


def test_claude_code_is_known_by_its_service_too() -> None:
    told = {"event.name": "api_request", "session.id": "s", "model": "m", "request_id": "req_1"}
    source = Exporter(resource={"service.name": "claude-code"})

    assert call_of(LogRecord(source=source, time_ns=START, attributes=told)) is not None
    assert call_of(LogRecord(source=Exporter(), time_ns=START, attributes=told)) is None


def test_a_refusal_completes_its_request() -> None:
    told: dict[str, Any] = {"session.id": "s", "request_id": "req_3", "model": "m"}
    source = Exporter("com.anthropic.claude_code.events")
    request: dict[str, Any] = {"event.name": "api_request", "input_tokens": 9}
    events = [request, {"event.name": "api_refusal"}]
    for order in (events, events[::-1]):
        records = [
            LogRecord(source=source, time_ns=START, attributes=told | event) for event in order
        ]
        (call,) = calls_of(records)
        assert call.finish_reason == "refusal"
        assert normalise_usage(call.usage).prompt_tokens == 9


def test_the_id_of_a_reply_names_no_call_by_itself() -> None:
    for reply, also in (("msg_1", ("anthropic:msg_1",)), ("resp_1", ("codex:resp_1",)), ("x", ())):
        call = capture_of(_span({"gen_ai.response.id": reply}))
        assert call.id == f"otel:{TRACE}:00f067aa0ba902b7"
        assert call.also_known == also


def _names(spans: list[Span]) -> list[str]:
    return [span.span_id for span in spans]


def test_of_calls_within_calls_the_innermost_counts() -> None:
    call = {"gen_ai.operation.name": "chat"}
    outer = _span(call, span_id="a")
    chain = _span({}, span_id="b", parent_id="a")
    inner = _span(call, span_id="c", parent_id="b")
    other = _span(call, span_id="a", trace_id="f" * 32)
    itself = _span(call, span_id="d", parent_id="d")
    export = [outer, chain, inner, other, itself]

    found = innermost(export, [span for span in export if is_call(span)])

    assert found == [inner, other, itself]
    # What lies around is told as calls have their ids: what is one, and what is not here.
    assert around_of(inner, above_of(inner, {(TRACE, "b"): chain})) == (f"otel:{TRACE}:a",)
    known = {(TRACE, each.span_id): each for each in (outer, chain)}
    assert around_of(inner, above_of(inner, known)) == (f"otel:{TRACE}:a",)
