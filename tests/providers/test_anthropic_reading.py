"""Clients' Messages requests: what they mean, and errors that name the member."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.anthropic import CLIENT
from helmdash.providers.anthropic.write_request import request_body
from helmdash.providers.errors import BadRequest
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Image,
    JsonMode,
    Message,
    Other,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

ENDPOINT = Endpoint(name="a", kind=ProviderKind.ANTHROPIC, base_url="https://api.example")


def body(**over: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-0",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        **over,
    }


def read(**over: Any) -> ChatRequest:
    return CLIENT.read_request(body(**over), model=None, stream=None)


def turn(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def test_a_whole_conversation_is_read_in_order() -> None:
    png = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    document = {"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}}
    redacted = {"type": "redacted_thinking", "data": "Em"}

    request = read(
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            turn("user", {"type": "text", "text": "Look"}, {"type": "image", "source": png}),
            turn(
                "assistant",
                {"type": "thinking", "thinking": "Hm", "signature": "seal"},
                redacted,
                {"type": "tool_use", "id": "t1", "name": "zoom", "input": {"by": 2}},
            ),
            turn(
                "user",
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "too far"}],
                },
                {"type": "tool_result", "tool_use_id": "t2", "content": "near"},
                {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
                document,
            ),
        ],
    )

    assert request.messages == (
        Message(role=Role.SYSTEM, parts=(Text(text="Be brief.", cache=True),)),
        Message(
            role=Role.USER,
            parts=(Text(text="Look"), Image(media_type="image/png", data="aGk=")),
        ),
        Message(
            role=Role.ASSISTANT,
            parts=(
                Reasoning(text="Hm", signature="seal"),
                Other(kind="redacted_thinking", raw=redacted),
                ToolCall(id="t1", name="zoom", arguments='{"by":2}'),
            ),
        ),
        Message(
            role=Role.TOOL,
            parts=(
                ToolResult(call_id="t1", parts=(Text(text="too far"),), is_error=True),
                ToolResult(call_id="t2", parts=(Text(text="near"),)),
            ),
        ),
        Message(
            role=Role.USER,
            parts=(
                Image(url="https://x.example/a.png"),
                Other(kind="document", raw=document),
            ),
        ),
    )


def test_the_members_beside_the_conversation_are_read() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    request = read(
        stream=True,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop_sequences=["END"],
        metadata={"user_id": "u"},
        tools=[{"name": "zoom", "description": "Zooms", "input_schema": schema, "strict": True}],
        tool_choice={"type": "tool", "name": "zoom", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 2000},
        output_config={"format": {"type": "json_schema", "schema": schema}},
        service_tier="auto",
    )

    assert request == ChatRequest(
        model="claude-sonnet-4-0",
        messages=(Message(role=Role.USER, parts=(Text(text="Hi"),)),),
        stream=True,
        tools=(Tool(name="zoom", description="Zooms", parameters=schema, strict=True),),
        tool_choice=ToolChoice(mode=Choice.ONE, name="zoom"),
        parallel_tool_calls=False,
        json_mode=JsonMode(schema=schema),
        max_tokens=100,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop=("END",),
        reasoning_tokens=2000,
        metadata={"user_id": "u"},
        extra={"service_tier": "auto"},
    )


@pytest.mark.parametrize(
    ("over", "effort", "tokens", "extra"),
    [
        # off
        ({"thinking": {"type": "disabled"}}, "none", None, {}),
        # the model decides, and nobody else has a word for that
        ({"thinking": {"type": "adaptive"}}, None, None, {"thinking": {"type": "adaptive"}}),
        # the model decides, steered by an effort
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
            "low",
            None,
            {},
        ),
        # the highest efforts have no word elsewhere
        ({"output_config": {"effort": "max"}}, "high", None, {}),
        # a word we do not know yet
        ({"output_config": {"effort": "x"}}, None, None, {"output_config": {"effort": "x"}}),
        # members of output_config that only Anthropic knows
        (
            {"output_config": {"effort": "low", "new": 1}},
            "low",
            None,
            {"output_config": {"new": 1}},
        ),
    ],
)
def test_thinking_is_read(
    over: dict[str, Any], effort: str | None, tokens: int | None, extra: dict[str, Any]
) -> None:
    request = read(**over)

    assert (request.reasoning_effort, request.reasoning_tokens) == (effort, tokens)
    assert request.extra == extra


def test_the_vendors_own_tools_stay_in_extra() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    own = {"name": "zoom", "input_schema": {"type": "object"}}

    request = read(tools=[search, own], tool_choice={"type": "tool", "name": "web_search"})

    assert [tool.name for tool in request.tools] == ["zoom"]
    assert request.tool_choice is None
    assert request.extra == {"tools": [search]}


def test_a_tool_result_with_a_document_is_kept_whole() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "document", "source": {"type": "text", "data": "x"}}],
    }

    request = read(messages=[turn("user", result)])

    assert request.messages == (
        Message(role=Role.TOOL, parts=(Other(kind="tool_result", raw=result),)),
    )


def test_the_old_name_of_structured_output_is_read() -> None:
    request = read(output_format={"type": "json_schema", "schema": {"type": "object"}})

    assert request.json_mode == JsonMode(schema={"type": "object"})


def test_the_url_wins_over_the_body() -> None:
    request = CLIENT.read_request(body(stream=True), model="other", stream=False)

    assert (request.model, request.stream) == ("other", False)


def test_zero_tokens_warm_the_prompt_cache() -> None:
    assert read(max_tokens=0).max_tokens == 0


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": ["Hi"]}, "messages.0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages.0.content.0"),
        ({"messages": [turn("user", {"text": "x"})]}, "messages.0.content.0.type"),
        (
            {"messages": [turn("user"), turn("user"), turn("user", {"type": 3})]},
            "messages.2.content.0.type",
        ),
        ({"messages": [turn("user", {"type": "text"})]}, "messages.0.content.0.text"),
        ({"messages": [turn("user", {"type": "image"})]}, "messages.0.content.0.source"),
        (
            {"messages": [turn("user", {"type": "image", "source": {}})]},
            "messages.0.content.0.source.type",
        ),
        (
            {"messages": [turn("assistant", {"type": "tool_use", "id": "a", "name": "b"})]},
            "messages.0.content.0.input",
        ),
        (
            {"messages": [turn("user", {"type": "tool_result"})]},
            "messages.0.content.0.tool_use_id",
        ),
        ({"system": 3}, "system"),
        ({"system": [{"type": "image", "source": {"type": "url", "url": "u"}}]}, "system.0.type"),
        ({"stream": "yes"}, "stream"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_k": 1.5}, "top_k"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": [3]}, "stop_sequences.0"),
        ({"metadata": "u"}, "metadata"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name"),
        ({"tools": [{"name": "a"}]}, "tools.0.input_schema"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"budget_tokens": 3}}, "thinking.type"),
        ({"output_config": {"effort": 3}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "json"}}}, "output_config.format.type"),
        ({"output_format": {"type": "json_schema"}}, "output_format.schema"),
    ],
)
def test_a_bad_request_names_the_member(over: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(**over)

    assert caught.value.field == field
    assert caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "role", "content", "name"]), inner)
    ),
    max_leaves=8,
)
MEMBERS = """model messages system max_tokens metadata stop_sequences stream tools tool_choice
    thinking output_config output_format temperature""".split()


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_whatever_a_client_sends_is_read_or_refused(over: dict[str, Any]) -> None:
    refused = ""
    try:
        read(**over)
    except BadRequest as error:
        refused = error.field

    assert refused.partition(".")[0] in (*over, "model", "max_tokens", "messages", "")


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
text_blocks = st.builds(lambda text: {"type": "text", "text": text}, words)
images = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
        {"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}},
    ]
)
results = st.builds(
    lambda call, content, extra: {
        "type": "tool_result",
        "tool_use_id": call,
        "content": content,
        **extra,
    },
    words,
    words | st.lists(text_blocks, min_size=1, max_size=2),
    st.sampled_from([{}, {"is_error": True}]),
)
thoughts = st.builds(
    lambda text, seal: {"type": "thinking", "thinking": text, "signature": seal}, words, words
)
calls = st.builds(
    lambda call, name, value: {"type": "tool_use", "id": call, "name": name, "input": value},
    words,
    words,
    st.dictionaries(words, st.integers() | words, max_size=2),
)
user_turns = st.builds(
    lambda first, then: turn("user", *first, *then),
    st.lists(results, max_size=2),
    st.lists(text_blocks | images, min_size=1, max_size=3),
)
assistant_turns = st.lists(thoughts | text_blocks | calls, min_size=1, max_size=3).map(
    lambda blocks: turn("assistant", *blocks)
)
conversations = st.builds(
    lambda pairs, end: [message for pair in pairs for message in pair] + [end],
    st.lists(st.tuples(user_turns, assistant_turns), max_size=2),
    user_turns,
)
schemas = st.just(
    {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
)
tools = st.lists(
    st.builds(lambda name, schema: {"name": name, "input_schema": schema}, words, schemas),
    min_size=1,
    max_size=2,
    unique_by=lambda tool: tool["name"],
)
members = st.fixed_dictionaries(
    {"messages": conversations, "max_tokens": st.integers(4000, 9000)},
    optional={
        "system": words | st.lists(text_blocks, min_size=1, max_size=2),
        "temperature": st.floats(0, 1),
        "top_k": st.integers(1, 50),
        "stop_sequences": st.lists(words, min_size=1, max_size=2),
        "stream": st.booleans(),
        "metadata": st.builds(lambda user: {"user_id": user}, words),
        "tools": tools,
        "output_config": schemas.map(
            lambda schema: {"format": {"type": "json_schema", "schema": schema}}
        ),
    },
)


@settings(max_examples=120, deadline=None)
@given(members)
def test_a_request_that_is_written_again_says_the_same(over: dict[str, Any]) -> None:
    request = read(model="claude-sonnet-4-5", **over)

    again = request_body(request, model="claude-sonnet-4-5")

    assert CLIENT.read_request(again, model=None, stream=None) == request


@pytest.mark.parametrize(
    "over",
    [
        # a budget, as it was
        {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled", "budget_tokens": 1500}},
        # the model decides
        {
            "model": "claude-opus-4-6",
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "medium"},
        },
        # each way to choose a tool
        *(
            {
                "tools": [{"name": "zoom", "input_schema": {"type": "object"}}],
                "tool_choice": choice,
            }
            for choice in (
                {"type": "auto", "disable_parallel_tool_use": True},
                {"type": "any", "disable_parallel_tool_use": False},
                {"type": "none"},
                {"type": "tool", "name": "zoom"},
            )
        ),
    ],
)
def test_thinking_and_choices_that_are_written_again_stay(over: dict[str, Any]) -> None:
    sent = body(**{"max_tokens": 4000, **over})
    request = CLIENT.read_request(sent, model=None, stream=None)

    assert request_body(request, model=sent["model"]) == sent
