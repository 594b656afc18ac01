"""The same turn of an agent by the gateway, as a log record and out of a transcript: one row."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.gateway.world import COMPLETION, PROMPT, World, model_of
from tests.otlp.exports import PROTOBUF, SpanOut, logs_json, spans_protobuf

pytestmark = pytest.mark.xdist_group("gateway")

CLAUDE = "claude-cli/2.1.197 (external, cli)"
GEMINI = "GeminiCLI/0.61.0/gemini-2.5-pro (linux; x64; terminal)"
CODEX = "codex_cli_rs/0.169.0 (Linux; x86_64)"


def _export(world: World, scope: str, *told: dict[str, Any]) -> str:
    body = json.loads(logs_json(told, scope=scope))
    for record in body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
        record["timeUnixNano"] = str(time.time_ns())
    answer = world.http.post("/v1/logs", json=body)
    assert (answer.status_code, answer.json()) == (200, {}), answer.text
    return answer.headers["x-helmdash-records"]


def _report(world: World, call: dict[str, Any]) -> Any:
    told = {"route": "transcript", "started_at": datetime.now(UTC).isoformat(), **call}
    answer = world.api.post("/calls/batch", json={"calls": [told]})
    assert answer.status_code == 200, answer.text
    return answer.json()


def _ids(world: World, conversation: str) -> list[str]:
    items = world.api.get("/calls", params={"conversation": conversation}).json()["items"]
    return [each["id"] for each in items]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_turn_of_claude_code(world: World, provider: str, stream: bool, mark: str) -> None:
    body = {
        "model": model_of(provider),
        "max_tokens": 64,
        "stream": stream,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": f"Hello {mark}?"}],
    }
    answer = world.post("/v1/messages", body, user_agent=CLAUDE, x_claude_code_session_id=mark)
    call = world.call_of(answer)
    request_id = answer.headers["request-id"]

    told = {"session.id": mark, "request_id": request_id, "model": "claude-opus-4-8"}
    counts = {"input_tokens": str(PROMPT), "output_tokens": str(COMPLETION)}
    event = {"event.name": "api_request", "query_source": "sdk", **told, **counts}
    assert _export(world, "com.anthropic.claude_code.events", event).startswith("call=1 ")
    line = {"id": f"anthropic:{request_id}", "model": "claude-opus-4-8", "conversation": mark}
    assert _report(world, line)["duplicates"] == 1

    found = world.api.get(f"/calls/anthropic:{request_id}").json()
    assert found["id"] == call["id"]
    assert found["routes"] == ["gateway", "otlp_log", "transcript"]
    assert _ids(world, mark) == [call["id"]]


def test_a_turn_of_codex(world: World, mark: str) -> None:
    body = {"model": model_of("openai"), "input": f"Hello {mark}?", "tools": [], "store": False}
    answer = world.post("/v1/responses", body, user_agent=CODEX, thread_id=mark)
    call = world.call_of(answer)

    event = {
        "event.name": "codex.sse_event",
        "event.kind": "response.completed",
        "conversation.id": mark,
        "app.version": "0.169.0",
        "input_token_count": str(PROMPT),
        "output_token_count": str(COMPLETION),
        "model": "gpt-5.4",
    }
    assert _export(world, "codex_otel.log_only", event).startswith("call=1 ")
    line = {"id": f"codex:{answer.json()['id']}", "model": "gpt-5.4", "conversation": mark}
    assert _report(world, line)["duplicates"] == 1

    found = world.api.get(f"/calls/{call['id']}").json()
    assert found["routes"] == ["gateway", "otlp_log", "transcript"]
    assert _ids(world, mark) == [call["id"]]


@pytest.mark.parametrize("doors", ["otlp_log transcript", "transcript otlp_log", "transcript"])
@pytest.mark.parametrize("provider", ["gemini", "openai"])
def test_a_turn_of_gemini_cli(world: World, provider: str, doors: str, mark: str) -> None:
    """Its requests name no session, and its chats no reply."""
    model = model_of(provider, mark=mark)
    body = {"contents": [{"role": "user", "parts": [{"text": f"Hello {mark}?"}]}]}
    answer = world.post(f"/v1beta/models/{model}:generateContent", body, user_agent=GEMINI)
    call = world.call_of(answer)

    def telemetry() -> None:
        told = {"session.id": mark, "event.timestamp": datetime.now(UTC).isoformat()}
        own = {"event.name": "gemini_cli.api_response", "model": answer.json()["modelVersion"]}
        counts = {"input_token_count": PROMPT, "output_token_count": COMPLETION}
        event = {
            "event.name": "gen_ai.client.inference.operation.details",
            "gen_ai.response.id": answer.json()["responseId"],
            "gen_ai.usage.input_tokens": PROMPT,
            "gen_ai.usage.output_tokens": COMPLETION,
        }
        # The call after it, whose record the gateway may not have stored yet.
        after = {**told, **own, **counts, "input_token_count": PROMPT + 3}
        became = _export(world, "gemini-cli", after, {**told, **own, **counts}, {**told, **event})
        assert became.startswith("call=2 ")

    def chat(*, prompt: int = PROMPT, later: float = 0.0, session: str = mark) -> int:
        at = datetime.now(UTC) + timedelta(seconds=later)
        line = {
            "id": f"gemini:{session}:{prompt}-{later}",
            "model": model,
            "client": {"name": "gemini-cli"},
            "conversation": session,
            "started_at": at.isoformat(),
            "usage": {"prompt_tokens": prompt, "completion_tokens": COMPLETION, "cached_tokens": 0},
        }
        found: int = _report(world, line)["duplicates"]
        return found

    other = f"{mark}-other"
    assert chat(prompt=PROMPT + 1, session=other) == chat(later=7, session=other) == 0
    for door in doors.split():
        if door == "otlp_log":
            telemetry()
        else:
            assert chat() == 1

    found = world.api.get(f"/calls/{call['id']}").json()
    assert found["routes"] == ["gateway", *sorted(doors.split())]
    assert found["conversation"] == call["conversation"]
    assert len(_ids(world, other)) == 2
    # What the gateway has not seen of the session is of the same conversation.
    assert chat(prompt=PROMPT + 2) == 0
    assert len(_ids(world, call["conversation"])) == 2 + ("otlp_log" in doors)


def test_a_large_export_is_taken_by_the_worker(world: World, mark: str) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    trace = mark.encode().hex().ljust(32, "0")[:32]
    spans = [
        SpanOut(number=number, trace=trace, attributes={**attributes, "session.id": mark})
        for number in range(1, 1_501)
    ]
    headers = {"content-type": PROTOBUF, "content-encoding": "gzip"}
    body = gzip.compress(spans_protobuf(spans))

    for _ in range(2):
        answer = world.http.post("/v1/traces", content=body, headers=headers)
        assert (answer.status_code, answer.content) == (200, b""), answer.text
        assert answer.headers["x-helmdash-records"] == "call=1500 other=0 rejected=0"

    found = world.api.get(f"/conversations/{mark}").json()
    assert found["generation"] == 1_500
    told = world.http.get("/metrics").text
    assert 'helmdash_otlp_records_total{became="call",signal="traces"} ' in told
