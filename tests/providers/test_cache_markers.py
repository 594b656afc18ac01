"""Where a cacheable prefix ends: told to those who have to be told, and to nobody else.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching
https://openrouter.ai/docs/features/prompt-caching
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.gateway.prompt_weight import weigh_tools
from helmdash.providers.registry import CLIENTS, UPSTREAMS
from helmdash.providers.wire import ChatRequest, JsonMode, Message, Part, Role, Text, ToolResult

MARK = {"type": "ephemeral"}
OPENROUTER = "https://openrouter.ai/api/v1"
CLAUDE = "anthropic/claude-sonnet-4.5"
USER = Message(role=Role.USER, parts=(Text(text="What next?"),))


def endpoint(kind: ProviderKind, base_url: str = "https://llm.example/v1") -> Endpoint:
    return Endpoint(name="up", kind=kind, base_url=base_url, api_key="a-key")


def request_of(*system: Text, user: Message = USER, **over: Any) -> ChatRequest:
    messages = (Message(role=Role.SYSTEM, parts=system), user)
    return ChatRequest(model="m", messages=messages, max_tokens=500, **over)


def bytes_for(
    kind: ProviderKind,
    request: ChatRequest,
    *,
    model: str,
    base_url: str = "https://llm.example/v1",
) -> bytes:
    written = UPSTREAMS[kind].write_request(request, endpoint=endpoint(kind, base_url), model=model)
    return written.body or b""


def body_for(
    kind: ProviderKind,
    request: ChatRequest,
    *,
    model: str,
    base_url: str = "https://llm.example/v1",
) -> Any:
    return json.loads(bytes_for(kind, request, model=model, base_url=base_url))


MARKED = Text(text="The catalog.", cache=True)
PLAIN = Text(text="The catalog.")
MARKED_BLOCK = {"type": "text", "text": "The catalog.", "cache_control": MARK}
PLAIN_BLOCK = {"type": "text", "text": "Be brief."}


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        # a marked text has to be a block
        ((MARKED,), [MARKED_BLOCK]),
        # what comes after the mark is not part of the prefix
        ((MARKED, Text(text="Be brief.")), [MARKED_BLOCK, PLAIN_BLOCK]),
        ((Text(text="Be brief."), MARKED), [PLAIN_BLOCK, MARKED_BLOCK]),
        # without a mark all stays as it was
        ((PLAIN,), "The catalog."),
        # a blank text is left out, and its mark with it: the vendor takes no mark on nothing
        ((Text(text="Be brief."), Text(text=" ", cache=True)), "Be brief."),
    ],
)
def test_anthropic_is_told_on_a_block_of_the_system_prompt(
    system: tuple[Text, ...], expected: Any
) -> None:
    body = body_for(ProviderKind.ANTHROPIC, request_of(*system), model="claude-sonnet-4-5")

    assert body["system"] == expected
    assert body["messages"] == [{"role": "user", "content": "What next?"}]


def test_instructions_for_json_come_after_the_prefix() -> None:
    request = request_of(MARKED, json_mode=JsonMode())

    # This model takes no forced tool, so that the JSON is asked for in words.
    body = body_for(ProviderKind.ANTHROPIC, request, model="claude-opus-5-5")

    assert body["system"][0] == MARKED_BLOCK
    assert all("cache_control" not in block for block in body["system"][1:])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # the end of a history
        (Message(role=Role.USER, parts=(MARKED,)), [MARKED_BLOCK]),
        # inside the answer of a tool
        (
            Message(role=Role.TOOL, parts=(ToolResult(call_id="t1", parts=(MARKED,)),)),
            [{"type": "tool_result", "tool_use_id": "t1", "content": [MARKED_BLOCK]}],
        ),
    ],
)
def test_anthropic_is_told_in_messages_too(message: Message, expected: Any) -> None:
    request = request_of(Text(text="Be brief."), user=message)

    body = body_for(ProviderKind.ANTHROPIC, request, model="claude-sonnet-4-5")

    assert body["messages"] == [{"role": "user", "content": expected}]


@pytest.mark.parametrize(
    "model", [CLAUDE, "Anthropic/Claude-Opus-4.1:beta", "google/gemini-2.5-pro"]
)
def test_openrouter_is_told_for_models_whose_provider_wants_to_be(model: str) -> None:
    request = request_of(MARKED, Text(text="Be brief."))

    body = body_for(ProviderKind.OPENAI, request, model=model, base_url=OPENROUTER)

    assert body["messages"] == [
        {"role": "system", "content": [MARKED_BLOCK, PLAIN_BLOCK]},
        {"role": "user", "content": "What next?"},
    ]


@pytest.mark.parametrize(
    ("kind", "model", "base_url"),
    [
        # other models of OpenRouter find prefixes by themselves
        (ProviderKind.OPENAI, "deepseek/deepseek-v3.2", OPENROUTER),
        (ProviderKind.OPENAI, "google/gemma-3-27b-it", OPENROUTER),
        # the same name elsewhere may be anything: an unknown member may be refused
        (ProviderKind.OPENAI, CLAUDE, "https://llm.example/v1"),
        (ProviderKind.OPENAI, "gpt-5-mini", "https://api.openai.com/v1"),
        (ProviderKind.OPENAI, "mistral-large", "https://api.mistral.ai/v1"),
        (ProviderKind.GEMINI, "gemini-2.5-pro", "https://generativelanguage.googleapis.com"),
        (ProviderKind.OLLAMA, "llama3.2", "http://ollama.example:11434"),
    ],
)
def test_everybody_else_gets_the_very_bytes_of_a_request_without_marks(
    kind: ProviderKind, model: str, base_url: str
) -> None:
    marked, plain = request_of(MARKED), request_of(PLAIN)

    assert bytes_for(kind, marked, model=model, base_url=base_url) == bytes_for(
        kind, plain, model=model, base_url=base_url
    )


@pytest.mark.parametrize(
    ("kind", "system"),
    [
        (ProviderKind.ANTHROPIC, {"system": [MARKED_BLOCK, PLAIN_BLOCK]}),
        (ProviderKind.OPENAI, {"system": None}),
    ],
)
def test_a_clients_marks_reach_another_format_that_knows_them(
    kind: ProviderKind, system: dict[str, Any]
) -> None:
    user: dict[str, Any] = {"role": "user", "content": [{**PLAIN_BLOCK, "cache_control": MARK}]}
    body: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [user]}
    if kind is ProviderKind.ANTHROPIC:
        body |= system
    else:
        body["messages"].insert(0, {"role": "system", "content": [MARKED_BLOCK, PLAIN_BLOCK]})

    request = CLIENTS[kind.value].read_request(body, model=None, stream=None)

    over = body_for(ProviderKind.OPENAI, request, model=CLAUDE, base_url=OPENROUTER)
    assert over["messages"][0]["content"] == [MARKED_BLOCK, PLAIN_BLOCK]
    assert over["messages"][1]["content"] == [{**PLAIN_BLOCK, "cache_control": MARK}]
    back = body_for(ProviderKind.ANTHROPIC, request, model="claude-sonnet-4-5")
    assert back["system"] == [MARKED_BLOCK, PLAIN_BLOCK]
    assert back["messages"] == [user]


@pytest.mark.parametrize("mark", [None, True, "ephemeral", []])
def test_what_is_no_mark_is_none(mark: Any) -> None:
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{**PLAIN_BLOCK, "cache_control": mark}]}],
    }
    for kind in (ProviderKind.ANTHROPIC, ProviderKind.OPENAI):
        request = CLIENTS[kind.value].read_request(body, model=None, stream=None)

        parts: tuple[Part, ...] = request.messages[0].parts
        assert parts == (Text(text="Be brief."),)


def test_a_prefill_keeps_its_mark() -> None:
    prefill = Message(role=Role.ASSISTANT, parts=(Text(text="So: ", cache=True),))
    request = request_of(PLAIN)
    request = replace(request, messages=(*request.messages, prefill))

    body = body_for(ProviderKind.ANTHROPIC, request, model="claude-sonnet-4-20250514")

    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "So:", "cache_control": MARK}
    ]


def test_where_a_cache_is_to_end_is_no_part_of_a_schema() -> None:
    """The mark moves from call to call, and what the provider keeps stays the same."""
    tool: dict[str, Any] = {"name": "look", "input_schema": {"type": "object"}}
    marked = {**tool, "cache_control": {"type": "ephemeral"}}

    assert weigh_tools({"tools": [marked]}) == weigh_tools({"tools": [tool]})
