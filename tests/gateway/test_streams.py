"""Streams: what passes, what stays here, and what happens when either side leaves."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import httpx
import openai
import pytest

from tests.gateway.clients import QUESTION, Client
from tests.gateway.world import COMPLETION, PROMPT, PROVIDERS, World, model_of
from tests.support.upstreams.plays import WHOLE

pytestmark = pytest.mark.xdist_group("gateway")

USER = [{"role": "user", "content": QUESTION}]
HANG_UP_SECONDS = 1.0


def native_request(shape: str, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """The path and the body of a question in a vendor's own API."""
    if shape == "openai":
        options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return "/v1/chat/completions", {"model": model, "messages": USER, **options}
    if shape == "anthropic":
        return "/v1/messages", {
            "model": model,
            "max_tokens": 99,
            "messages": USER,
            "stream": stream,
        }
    if shape == "gemini":
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
        return f"/v1beta/models/{model}:{method}", {"contents": contents}
    return "/api/chat", {"model": model, "messages": USER, "stream": stream}


@pytest.mark.parametrize(
    "behaviour", ["plain", "two-tools", "reasoning", "crumbs", "usage-missing"]
)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("shape", PROVIDERS)
def test_a_vendors_own_reply_passes_byte_for_byte(
    world: World, shape: str, stream: bool, behaviour: str, mark: str
) -> None:
    path, body = native_request(shape, model_of(shape, behaviour, mark), stream=stream)

    answer = world.post(path, body)

    (seen,) = world.fleet[shape].seen(mark)
    assert answer.status_code == 200
    assert answer.content == bytes(seen.sent)
    assert seen.is_complete


@pytest.mark.parametrize("shape", ["openai", "anthropic", "ollama"])
def test_a_request_passes_byte_for_byte_but_for_the_models_name(
    world: World, shape: str, mark: str
) -> None:
    model = model_of(shape, "plain", mark)
    path, body = native_request(shape, model, stream=False)
    if shape == "ollama":
        # A window of the client's own; the budget's is put in otherwise (test_local_models).
        body["options"] = {**body.get("options", {}), "num_ctx": 4096}
    # Spacing, escapes, numbers and order of the client's own.
    content = (
        b' {\n\t"x_first" : [1.50, 1e3, "\\u00fc\\/"],'
        + json.dumps(body, indent=3, sort_keys=True)[1:].encode()
        + b"\n"
    )

    answer = world.post(path, content=content, anthropic_version="2023-06-01")

    assert answer.status_code == 200, answer.text
    (seen,) = world.fleet[shape].seen(mark)
    assert seen.body == content.replace(model.encode(), model.partition("/")[2].encode())


def test_a_request_for_a_bare_model_passes_as_it_is(world: World, mark: str) -> None:
    content = f'{{ "messages":[{{"role":"user","content":"{mark}"}}],"model" : "gpt-plain" }}'

    assert world.post("/v1/chat/completions", content=content.encode()).status_code == 200

    (seen,) = world.fleet.openai.seen(mark)
    assert seen.body == content.encode()


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False}}])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_usage_nobody_asked_for_is_recorded_and_not_shown(
    world: World, provider: str, options: dict[str, Any], mark: str
) -> None:
    body = {"model": model_of(provider, "plain", mark), "messages": USER, "stream": True, **options}

    answer = world.post("/v1/chat/completions", body)

    lines = [line for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert all(chunk.get("usage") is None and chunk["choices"] for chunk in chunks)
    said = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "".join(said) == WHOLE
    usage = world.call_of(answer)["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (PROMPT, COMPLETION)


def test_pieces_arrive_as_they_are_sent(world: World, mark: str) -> None:
    path, body = native_request("openai", model_of("openai", "slow", mark), stream=True)
    arrivals = []
    with world.http.stream("POST", path, json=body) as answer:
        for _ in answer.iter_raw():
            arrivals.append(time.monotonic())

    # Ten events, each 0.05 s after the other.
    assert len(arrivals) >= 8
    assert arrivals[-1] - arrivals[0] > 0.3
    call = world.call_of(answer)
    assert call["ttft_ms"] < call["latency_ms"] - 300
    assert call["overhead_ms"] < call["latency_ms"] - 300


def test_the_time_to_the_first_token_is_the_upstreams(world: World, mark: str) -> None:
    path, body = native_request("openai", model_of("openai", "late", mark), stream=True)

    call = world.call_of(world.post(path, body))

    assert 300 <= call["ttft_ms"] <= call["latency_ms"]
    assert call["overhead_ms"] <= call["latency_ms"] - 300


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("shape", PROVIDERS)
def test_leaving_midway_is_recorded_and_stops_the_upstream(
    world: World, clients: dict[str, Client], shape: str, provider: str, mark: str
) -> None:
    model = model_of(provider, "endless", mark)

    clients[shape].leave_early(model)

    (seen,) = world.fleet[provider].seen(mark)
    assert seen.hung_up.wait(HANG_UP_SECONDS)
    call = world.call_to(model)
    assert call["status"] == "cancelled"
    assert (call["cause"]["name"], call["cause"]["rule"]) == (
        "client_disconnected",
        "client.midway",
    )
    assert call["finish_reason"] is None
    assert call["raw_content_len"] > 0
    assert call["ttft_ms"] is not None


def test_leaving_once_the_reply_is_complete_is_no_cancellation(world: World, mark: str) -> None:
    """Many clients stop at the finish reason, and never read the usage behind it."""
    model = model_of("openai", "slow", mark)
    path, body = native_request("openai", model, stream=True)
    with world.http.stream("POST", path, json=body) as answer:
        next(line for line in answer.iter_lines() if '"finish_reason":"stop"' in line)

    call = world.call_to(model)
    assert (call["status"], call["cause"], call["finish_reason"]) == ("success", None, "stop")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_streams_side_by_side_do_not_mix(world: World, provider: str, mark: str) -> None:
    behaviour = {"openai": "retell", "anthropic": "crumbs"}[provider]
    model = model_of(provider, behaviour, mark)

    async def ask(client: openai.AsyncOpenAI, number: int) -> str:
        message: Any = [{"role": "user", "content": f"I am number {number}."}]
        stream = await client.chat.completions.create(model=model, messages=message, stream=True)
        return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(
            base_url=f"{world.url}/v1", api_key=world.key, max_retries=0
        ) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(20)))

    said = asyncio.run(ask_all())

    own = [f"You said: I am number {number}." for number in range(20)]
    assert said == (own if provider == "openai" else [WHOLE] * 20)
    assert len({call["id"] for call in world.calls_to(model, count=20)}) == 20


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("provider", "behaviour"),
    [
        ("openai", "hang"),
        ("anthropic", "hang"),
        # between an error and the next attempt
        ("openai", "busy-once"),
    ],
)
def test_leaving_before_the_first_byte_is_recorded_and_stops_the_upstream(
    world: World, provider: str, behaviour: str, stream: bool, mark: str
) -> None:
    model = model_of(provider, behaviour, mark)
    path, body = native_request("openai", model, stream=stream)
    content = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", world.served.port)) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {world.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        (seen,) = world.fleet[provider].wait_for(mark)

    call = world.call_to(model)
    assert call["status"] == "cancelled"
    assert (call["cause"]["name"], call["cause"]["rule"]) == (
        "client_disconnected",
        "client.before_first_byte",
    )
    assert call["ttft_ms"] is None
    assert call["raw_content_len"] in (None, 0)
    if behaviour == "hang":
        assert seen.hung_up.wait(HANG_UP_SECONDS)
    assert len(world.fleet[provider].seen(mark)) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_leaving_while_a_whole_reply_is_due_midway(world: World, stream: bool, mark: str) -> None:
    model = model_of("openai", "hang-midway", mark)
    path, body = native_request("openai", model, stream=stream)
    with pytest.raises(httpx.ReadTimeout):
        world.http.post(path, json=body, timeout=0.5)

    (seen,) = world.fleet.openai.seen(mark)
    assert seen.hung_up.wait(HANG_UP_SECONDS)
    assert world.call_to(model)["cause"]["name"] == "client_disconnected"


@pytest.mark.parametrize("behaviour", ["cut-midway", "error-midway"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("shape", PROVIDERS)
def test_an_upstream_that_breaks_off_is_told_in_the_clients_own_words(
    world: World,
    clients: dict[str, Client],
    shape: str,
    provider: str,
    behaviour: str,
    mark: str,
) -> None:
    model = model_of(provider, behaviour, mark)

    # Each SDK has exceptions of its own for an error inside a stream.
    with pytest.raises(Exception):  # noqa: B017
        clients[shape].stream(model)

    call = world.call_to(model)
    assert call["status"] == "error"
    causes = {"cut-midway": "upstream_error", "error-midway": "upstream_error_in_200"}
    assert call["cause"]["name"] == causes[behaviour]
    assert call["raw_content_len"] > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_chat_stream_breaks_off_where_its_upstream_did(
    world: World, provider: str, mark: str
) -> None:
    """OpenAI's chat API has no event for it. Qwen Code, pi, opencode and Cline's command ask again
    after a connection that broke, and give up after an error in the stream (tried, 2026-11-29)."""
    model = model_of(provider, "cut-midway", mark)
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hello?"}]}
    came = bytearray()

    def take(answer: httpx.Response) -> None:
        for piece in answer.iter_bytes():
            came.extend(piece)

    with (
        world.http.stream("POST", "/v1/chat/completions", json=body) as answer,
        pytest.raises(httpx.TransportError),
    ):
        take(answer)

    assert answer.status_code == 200
    assert b'"content":' in came
    assert b'"error"' not in came
    assert came.endswith(b"\n\n")
    call = world.call_to(model)
    assert (call["status"], call["cause"]["rule"]) == ("error", "upstream.closed_early")
    # The next request has a connection of its own.
    assert world.http.get("/v1/models").status_code == 200


def test_a_gemini_stream_without_events_is_one_json_array(world: World, mark: str) -> None:
    for provider in ("gemini", "openai"):
        model = model_of(provider, "plain", mark)
        _, body = native_request("gemini", model, stream=False)

        answer = world.post(f"/v1beta/models/{model}:streamGenerateContent", body)

        assert answer.status_code == 200, answer.text
        contents = [piece["candidates"][0].get("content", {}) for piece in answer.json()]
        parts = [content.get("parts", []) for content in contents]
        assert "".join(part.get("text", "") for group in parts for part in group) == WHOLE
        usage = world.call_of(answer)["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (PROMPT, COMPLETION)


def test_a_huge_reply_passes_whole_or_streamed(world: World, mark: str) -> None:
    for shape, provider in (("openai", "openai"), ("openai", "anthropic")):
        for stream in (False, True):
            path, body = native_request(shape, model_of(provider, "huge", mark), stream=stream)

            answer = world.post(path, body)

            assert answer.content.count(b"no play. ") == 230_000
            assert world.call_of(answer)["raw_content_len"] == 230 * 22_000


def test_a_reply_that_does_not_stream_where_it_was_asked_is_still_a_stream(
    world: World, mark: str
) -> None:
    model = model_of("openai", "error-in-200", mark)
    path, body = native_request("anthropic", model, stream=True)

    answer = world.post(path, body)

    assert "error" in answer.text
    assert world.call_of(answer)["cause"]["name"] == "upstream_error_in_200"
