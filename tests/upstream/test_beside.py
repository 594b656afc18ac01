"""What a reply says beside its text is handed on, in every provider's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.core.calls.beside import Beside, ToolUse
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.providers.registry import UPSTREAMS
from helmdash.providers.wire import ChatRequest, Message, Role, Text
from helmdash.upstream.completing import beside_of

REQUEST = ChatRequest(
    model="m", messages=(Message(role=Role.USER, parts=(Text(text="Plan."),)),), max_tokens=9
)
ARGS = {"url": "u"}
USE = ToolUse("web.scrape", json.dumps(ARGS))
THOUGHTS = 'So: {"steps": []}'


def openai(**message: Any) -> Any:
    said = {"role": "assistant", "content": None, **message}
    return {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}


def openai_call() -> dict[str, Any]:
    function = {"name": USE.name, "arguments": USE.arguments}
    return {"id": "c", "type": "function", "function": function}


def gemini(**part: Any) -> Any:
    said = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": said, "finishReason": "STOP"}]}


def anthropic(**block: Any) -> Any:
    return {"type": "message", "role": "assistant", "content": [block], "stop_reason": "end_turn"}


def ollama(**message: Any) -> Any:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "m", "message": said, "done": True, "done_reason": "stop"}


@pytest.mark.parametrize(
    ("kind", "called", "thought"),
    [
        pytest.param(
            ProviderKind.OPENAI,
            openai(tool_calls=[openai_call()]),
            openai(reasoning_content=THOUGHTS),
            id="openai",
        ),
        pytest.param(
            ProviderKind.OPENAI,
            openai(tool_calls=[openai_call()]),
            openai(reasoning=THOUGHTS),
            id="openrouter",
        ),
        pytest.param(
            ProviderKind.ANTHROPIC,
            anthropic(type="tool_use", id="t", name=USE.name, input=ARGS),
            anthropic(type="thinking", thinking=THOUGHTS, signature="s"),
            id="anthropic",
        ),
        pytest.param(
            ProviderKind.GEMINI,
            gemini(functionCall={"name": USE.name, "args": ARGS}),
            gemini(text=THOUGHTS, thought=True),
            id="gemini",
        ),
        pytest.param(
            ProviderKind.OLLAMA,
            ollama(tool_calls=[{"function": {"name": USE.name, "arguments": ARGS}}]),
            ollama(thinking=THOUGHTS),
            id="ollama",
        ),
    ],
)
def test_calls_and_thoughts_are_handed_on(kind: ProviderKind, called: Any, thought: Any) -> None:
    def read(body: Any) -> Beside | None:
        return beside_of(UPSTREAMS[kind].read_reply(json.dumps(body).encode(), request=REQUEST))

    calls = read(called)
    assert calls is not None
    assert [(use.name, json.loads(use.arguments)) for use in calls.calls] == [(USE.name, ARGS)]
    assert read(thought) == Beside(reasoning=THOUGHTS)
