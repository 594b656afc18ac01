"""Large requests: what one may hold, and that the worker answers them like the server itself."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.gateway.requests.sizes import MOST_MESSAGES, MOST_PARTS, MOST_TOOLS
from tests.gateway.world import World, model_of

pytestmark = pytest.mark.xdist_group("gateway")

MIB = 1024 * 1024


def messages_of(count: int, parts: int, text: str) -> list[dict[str, Any]]:
    """So many messages, or one of so many parts; the last one says the text."""
    last = {"role": "user", "content": text or "Go on."}
    if parts:
        return [{"role": "user", "content": [{"type": "text", "text": "x"}] * parts}]
    return [{"role": "user", "content": "Go on."}] * (count - 1) + [last]


def openai(model: str, messages: int = 1, parts: int = 0, tools: int = 0, text: str = "") -> Any:
    body: dict[str, Any] = {"model": model, "messages": messages_of(messages, parts, text)}
    if tools:
        named = [{"type": "function", "function": {"name": f"t{n}"}} for n in range(tools)]
        body["tools"] = named
    return "/v1/chat/completions", body


def anthropic(model: str, messages: int = 1, parts: int = 0, tools: int = 0, text: str = "") -> Any:
    _, body = openai(model, messages, parts, 0, text)
    if tools:
        body["tools"] = [{"name": f"t{n}", "input_schema": {}} for n in range(tools)]
    return "/v1/messages", {**body, "max_tokens": 9}


def ollama(model: str, messages: int = 1, parts: int = 0, tools: int = 0, text: str = "") -> Any:
    _, body = openai(model, messages, 0, tools, text)
    if parts:
        call = {"function": {"name": "t", "arguments": {}}}
        said = {"role": "assistant", "content": "", "tool_calls": [call] * parts}
        body["messages"].append(said)
    return "/api/chat", {**body, "stream": False}


def gemini(model: str, messages: int = 1, parts: int = 0, tools: int = 0, text: str = "") -> Any:
    said = {"role": "user", "parts": [{"text": "x"}] * (parts or 1)}
    last = {"role": "user", "parts": [{"text": text or "x"}]}
    contents = [said] * messages
    body: dict[str, Any] = {"contents": [*contents[1:], last] if text else contents}
    if tools:
        body["tools"] = [{"functionDeclarations": [{"name": f"t{n}"} for n in range(tools)]}]
    return f"/v1beta/models/{model}:generateContent", body


SHAPES = {"openai": openai, "anthropic": anthropic, "gemini": gemini, "ollama": ollama}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("count", "most"),
    [("messages", MOST_MESSAGES), ("parts", MOST_PARTS), ("tools", MOST_TOOLS)],
)
def test_too_many_of_anything_is_refused_and_named(
    world: World, shape: str, count: str, most: int, mark: str
) -> None:
    counts: dict[str, Any] = {count: most + 1}
    path, body = SHAPES[shape](model_of(shape, mark=mark), **counts)

    answer = world.post(path, body)

    assert answer.status_code == 400, answer.text[:500]
    assert f"{most:,}" in answer.text
    member = "tools" if count == "tools" else "contents" if shape == "gemini" else "messages"
    assert member in answer.text


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_request_is_answered_and_recorded_like_any_other(
    world: World, shape: str, streams: bool, mark: str
) -> None:
    path, body = SHAPES[shape](model_of(shape, mark=mark))
    small = world.post(path, body)
    text = "word " * (2 * MIB // 5)
    path, body = SHAPES[shape](model_of(shape, mark=mark), messages=40, text=text)
    if shape == "gemini":
        path = path.replace(":generate", ":streamGenerate") if streams else path
    else:
        body["stream"] = streams

    answer = world.post(path, body, x_helmdash_conversation=f"large-{mark}")

    call = world.call_of(answer)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == small.headers["content-type"] or streams
    assert {*small.headers} - {*answer.headers} <= {"content-length"}
    assert call["sent"]["bytes"] >= len(text)
    assert call["sent"]["messages"] == 40
    assert call["conversation"] == f"large-{mark}"
    assert call["usage"]["prompt_tokens"] == world.call_of(small)["usage"]["prompt_tokens"]


def test_a_large_report_and_a_large_fit_are_taken_too(world: World) -> None:
    text = {"role": "user", "content": "word " * 300_000}
    report = {"model": "some/model", "messages": [text], "usage": {"prompt_tokens": 300_000}}

    told = world.api.post("/calls", json=report)
    batch = world.api.post("/calls/batch", json={"calls": [report]})
    tags = world.api.post("/decode", json={"raw": "<think>" * 200_000})

    assert (told.status_code, batch.status_code) == (201, 200), (told.text, batch.text)
    assert world.call(told.json()["id"])["usage"]["prompt_tokens"] == 300_000
    assert tags.status_code == 422
    assert tags.json()["cause"]["name"] == "likely_timeout"


def test_a_large_body_without_a_good_key_reaches_nobody(world: World) -> None:
    path, body = openai(model_of("openai"))
    body["extra"] = "x" * 2 * MIB

    for there in (path, "/api/v1/calls", "/mcp"):
        answer = world.post(there, body, authorization="Bearer hd_wrong")
        assert answer.status_code == 401, there
