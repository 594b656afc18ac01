"""Requests in the OpenAI format: read, written for each vendor, passed on."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.errors import BadRequest, CannotTranslate
from helmdash.providers.openai import CLIENT, UPSTREAM
from helmdash.providers.quirks import QUIRKS, quirk_of
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Image,
    JsonMode,
    Message,
    Other,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}
PNG = "iVBORw0KGgo="
MESSAGES = [{"role": "user", "content": "hi"}]


def make_endpoint(host: str = "llm.example", name: str = "up") -> Endpoint:
    return Endpoint(
        name=name, kind=ProviderKind.OPENAI, base_url=f"https://{host}/v1", api_key="sk-secret"
    )


def read(body: dict[str, Any]) -> ChatRequest:
    return CLIENT.read_request(
        {"model": "m", "messages": MESSAGES, **body}, model=None, stream=None
    )


def written(request: ChatRequest, *, host: str = "llm.example", model: str = "m") -> dict[str, Any]:
    sent = UPSTREAM.write_request(request, endpoint=make_endpoint(host), model=model)
    assert sent.path == "/chat/completions"
    assert sent.body is not None
    body: dict[str, Any] = json.loads(sent.body)
    return body


def make_request(*messages: Message, **over: Any) -> ChatRequest:
    said = messages or (Message(role=Role.USER, parts=(Text(text="hi"),)),)
    return ChatRequest(model="m", messages=said, **over)


def passed(
    body: bytes, *, host: str = "llm.example", model: str = "m", stream: bool = False
) -> Any:
    sent = CLIENT.pass_request(
        body, json.loads(body), endpoint=make_endpoint(host), model=model, stream=stream
    )
    return sent.body


# --- reading


def test_a_conversation_with_everything_is_read() -> None:
    request = CLIENT.read_request(
        {
            "model": "openai/gpt-4o",
            "messages": [
                {"role": "developer", "content": "Be brief.", "name": "ops"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look"},
                        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                        {
                            "type": "image_url",
                            "image_url": {"url": "https://e.org/a", "detail": "low"},
                        },
                        {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "42"},
            ],
            "user": "u-1",
        },
        model=None,
        stream=None,
    )

    audio = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}
    assert request.model == "openai/gpt-4o"
    assert request.extra == {"user": "u-1"}
    assert request.messages == (
        Message(role=Role.SYSTEM, parts=(Text(text="Be brief."),), name="ops"),
        Message(
            role=Role.USER,
            parts=(
                Text(text="Look"),
                Image(media_type="image/png", data=PNG),
                Image(url="https://e.org/a", detail="low"),
                Other(kind="input_audio", raw=audio),
            ),
        ),
        Message(
            role=Role.ASSISTANT,
            parts=(Reasoning(text="hm"), ToolCall(id="c1", name="f", arguments="{}")),
        ),
        Message(role=Role.TOOL, parts=(ToolResult(call_id="c1", parts=(Text(text="42"),)),)),
    )


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ({"max_tokens": 5}, "max_tokens", 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, "max_tokens", 7),
        ({"max_tokens": 5.0}, "max_tokens", 5),
        ({"stop": "END"}, "stop", ("END",)),
        ({"stop": ["a", "b"]}, "stop", ("a", "b")),
        ({"stop": None}, "stop", ()),
        ({"temperature": 0}, "temperature", 0),
        ({"tool_choice": "required"}, "tool_choice", ToolChoice(mode=Choice.REQUIRED)),
        # Mistral's word
        ({"tool_choice": "any"}, "tool_choice", ToolChoice(mode=Choice.REQUIRED)),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            "tool_choice",
            ToolChoice(mode=Choice.ONE, name="f"),
        ),
        # from before there were tools
        ({"function_call": {"name": "f"}}, "tool_choice", ToolChoice(mode=Choice.ONE, name="f")),
        ({"functions": [{"name": "f"}]}, "tools", (Tool(name="f"),)),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "parameters": SCHEMA, "strict": True},
                    }
                ]
            },
            "tools",
            (Tool(name="f", parameters=SCHEMA, strict=True),),
        ),
        ({"tools": [{"type": "web_search"}]}, "tools", ()),
        ({"seed": 2**63 - 1}, "seed", 2**63 - 1),
        ({"response_format": {"type": "json_object"}}, "json_mode", JsonMode()),
        ({"response_format": {"type": "text"}}, "json_mode", None),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA},
                }
            },
            "json_mode",
            JsonMode(name="n", schema=SCHEMA),
        ),
        ({"reasoning_effort": "low"}, "reasoning_effort", "low"),
        # OpenRouter's object
        ({"reasoning": {"max_tokens": 100}}, "reasoning_tokens", 100),
        ({"stream": True}, "wants_usage", False),
        ({"stream": True, "stream_options": {"include_usage": True}}, "wants_usage", True),
        ({"stream": False}, "wants_usage", True),
    ],
)
def test_members_are_read(body: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read(body), field) == value


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "captain", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": ["user"]}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "messages[0].content[0].type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].image_url.url",
        ),
        ({"model": " "}, "model"),
        ({"model": 5}, "model"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"stop": [1]}, "stop"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ],
)
def test_what_cannot_be_read_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(body)

    assert caught.value.field == field


# --- writing


def test_an_assistants_turn_and_its_tools_are_written() -> None:
    request = make_request(
        Message(role=Role.SYSTEM, parts=(Text(text="Be brief."),)),
        Message(role=Role.USER, parts=(Text(text="Look"), Image(media_type="image/png", data=PNG))),
        Message(
            role=Role.ASSISTANT,
            parts=(
                Reasoning(text="hm"),
                Text(text="So."),
                ToolCall(id="c", name="f", arguments=""),
            ),
        ),
        Message(
            role=Role.TOOL,
            parts=(
                ToolResult(call_id="c", parts=(Text(text="a"), Image(url="https://e.org/x"))),
                ToolResult(call_id="d", parts=(Text(text="b"),)),
            ),
        ),
    )

    messages = written(request)["messages"]

    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert messages[:5] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look"}, picture]},
        {"role": "assistant", "content": "So.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a"},
        {"role": "tool", "tool_call_id": "d", "content": "b"},
    ]
    # a tool may only answer with text, so its picture follows as the user's
    assert messages[5]["role"] == "user"
    assert messages[5]["content"][1]["image_url"]["url"] == "https://e.org/x"


def test_the_key_is_sent_and_not_shown() -> None:
    sent = UPSTREAM.write_request(make_request(), endpoint=make_endpoint(), model="m")
    azure = UPSTREAM.write_request(
        make_request(), endpoint=make_endpoint("x.openai.azure.com"), model="m"
    )

    assert ("authorization", "Bearer sk-secret") in sent.headers
    assert ("api-key", "sk-secret") in azure.headers
    assert "sk-secret" not in repr(make_endpoint())


@pytest.mark.parametrize(
    ("host", "model", "over", "expected"),
    [
        # the limit's name, only for the models that need it
        ("api.openai.com", "gpt-5-mini", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ("api.openai.com", "gpt-4o", {"max_tokens": 9}, {"max_tokens": 9}),
        # so also on a host nobody knows, which may be a proxy with its own prefix
        ("llm.example", "gpt-5-mini", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ("llm.example", "openai/o4-mini", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ("llm.example", "eu/openai/GPT-5", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        ("llm.example", "gpt-5/llama", {"max_tokens": 9}, {"max_tokens": 9}),
        ("llm.example", "llama3.3", {"max_tokens": 9}, {"max_tokens": 9}),
        # vendors that want max_tokens for every model
        ("openrouter.ai", "openai/o4-mini", {"max_tokens": 9}, {"max_tokens": 9}),
        ("api.mistral.ai", "o1", {"max_tokens": 9}, {"max_tokens": 9}),
        # a stream always asks for usage, but Mistral refuses to be asked
        (
            "llm.example",
            "m",
            {"stream": True, "wants_usage": False},
            {"stream": True, "stream_options": {"include_usage": True}},
        ),
        ("api.mistral.ai", "m", {"stream": True}, {"stream": True}),
        ("api.mistral.ai", "m", {"seed": 3}, {"random_seed": 3}),
        ("api.x.ai", "m", {"presence_penalty": 1.0}, {}),
        ("llm.example", "m", {"presence_penalty": 1.0}, {"presence_penalty": 1.0}),
        ("openrouter.ai", "m", {"top_k": 4}, {"top_k": 4}),
        ("api.openai.com", "m", {"top_k": 4}, {}),
        ("llm.example", "m", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("openrouter.ai", "m", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        (
            "openrouter.ai",
            "m",
            {"reasoning_effort": "low", "reasoning_tokens": 50},
            {"reasoning": {"max_tokens": 50}},
        ),
        ("api.deepseek.com", "m", {"reasoning_effort": "low"}, {}),
        (
            "llm.example",
            "m",
            {"json_mode": JsonMode(schema=SCHEMA, strict=True)},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        (
            "api.deepseek.com",
            "m",
            {"json_mode": JsonMode(schema=SCHEMA)},
            {"response_format": {"type": "json_object"}},
        ),
        # a choice among no tools would be refused
        ("llm.example", "m", {"tool_choice": ToolChoice(mode=Choice.AUTO)}, {}),
        ("llm.example", "m", {"stop": ("a",)}, {"stop": ["a"]}),
        # another format's members stay with it
        ("llm.example", "m", {"extra": {"thinking": {}}, "metadata": {"user_id": "u"}}, {}),
    ],
)
def test_each_vendor_gets_what_it_takes(
    host: str, model: str, over: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = written(make_request(**over), host=host, model=model)

    said = {name: value for name, value in body.items() if name not in ("model", "messages")}
    assert said == expected


def test_mistral_gets_ids_of_nine_letters_that_still_belong_together() -> None:
    request = make_request(
        Message(role=Role.ASSISTANT, parts=(ToolCall(id="toolu_01A", name="f", arguments="{}"),)),
        Message(role=Role.TOOL, parts=(ToolResult(call_id="toolu_01A", parts=()),)),
        Message(role=Role.TOOL, parts=(ToolResult(call_id="3sniiMddS", parts=()),)),
    )

    call, answer, other = written(request, host="api.mistral.ai")["messages"]

    short = call["tool_calls"][0]["id"]
    assert len(short) == 9
    assert short.isalnum()
    assert answer["tool_call_id"] == short
    assert other["tool_call_id"] == "3sniiMddS"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("llm.example", {}),
        ("api.deepseek.com", {"reasoning_content": "hm"}),
        (
            "openrouter.ai",
            {
                "reasoning": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}],
            },
        ),
    ],
)
def test_reasoning_goes_back_where_it_is_wanted(host: str, expected: dict[str, Any]) -> None:
    parts = (Reasoning(text="hm", signature="s"), Text(text="So."))

    (message,) = written(make_request(Message(role=Role.ASSISTANT, parts=parts)), host=host)[
        "messages"
    ]

    assert message == {"role": "assistant", "content": "So.", **expected}


def test_a_part_that_only_another_format_knows_cannot_be_said() -> None:
    part = Other(kind="document", raw={"type": "document"})

    with pytest.raises(CannotTranslate, match="document"):
        written(make_request(Message(role=Role.USER, parts=(part,))))


TEXTS = st.text(min_size=1, max_size=12)
USER_PARTS = st.one_of(
    st.builds(Text, text=TEXTS),
    st.builds(Image, media_type=st.just("image/png"), data=st.just(PNG)),
    st.builds(Image, url=st.just("https://e.org/a"), detail=st.sampled_from([None, "low"])),
)
CALLS = st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=st.sampled_from(["{}", '{"a":1}']))


def assistant(text: list[Part], calls: list[Part]) -> Message:
    return Message(role=Role.ASSISTANT, parts=(*text, *calls))


CONVERSATIONS = st.lists(
    st.one_of(
        st.builds(
            Message,
            role=st.just(Role.USER),
            parts=st.lists(USER_PARTS, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(
            Message,
            role=st.just(Role.SYSTEM),
            parts=st.builds(Text, text=TEXTS).map(lambda t: (t,)),
        ),
        st.builds(
            assistant,
            st.lists(st.builds(Text, text=TEXTS), max_size=1),
            st.lists(CALLS, max_size=2),
        ),
        st.builds(
            Message,
            role=st.just(Role.TOOL),
            parts=st.builds(
                ToolResult,
                call_id=TEXTS,
                parts=st.lists(st.builds(Text, text=TEXTS), max_size=1).map(tuple),
            ).map(lambda result: (result,)),
        ),
    ),
    min_size=1,
    max_size=5,
).map(tuple)


@settings(max_examples=60, deadline=None)
@given(
    messages=CONVERSATIONS,
    stream=st.booleans(),
    tools=st.lists(
        st.builds(Tool, name=TEXTS, description=st.none() | TEXTS, parameters=st.just(SCHEMA)),
        max_size=2,
    ).map(tuple),
    stop=st.lists(TEXTS, max_size=2).map(tuple),
    max_tokens=st.none() | st.integers(1, 999),
    temperature=st.none() | st.floats(0, 2),
)
def test_a_written_request_reads_the_same(messages: tuple[Message, ...], **over: Any) -> None:
    request = ChatRequest(model="m", messages=messages, **over)

    again = CLIENT.read_request(written(request), model=None, stream=None)

    assert again == dataclasses.replace(request, wants_usage=True)


# --- passing on


def test_a_request_that_needs_no_change_is_the_same_object() -> None:
    plain = b'{"model": "m", "messages": [],  "future_member": [1.0]}'
    asking = b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}'

    assert passed(plain) is plain
    assert passed(asking, stream=True) is asking


@pytest.mark.parametrize(
    ("body", "over", "expected"),
    [
        (b'{"model" : "up/m" }', {}, b'{"model" : "m" }'),
        (
            b'{"model":"m", "stream":true}',
            {"stream": True},
            b'{"stream_options":{"include_usage":true},"model":"m", "stream":true}',
        ),
        # what else stands in the options stays
        (
            b'{"model":"m","stream_options":{"include_usage":false,"x":1}}',
            {"stream": True},
            b'{"model":"m","stream_options":{"include_usage":true,"x":1}}',
        ),
        (
            b'{"model":"m","stream_options":null}',
            {"stream": True},
            b'{"model":"m","stream_options":{"include_usage":true}}',
        ),
        # Mistral refuses the options
        (
            b'{"model":"m","stream_options":{"include_usage":true},"stream":true}',
            {"stream": True, "host": "api.mistral.ai"},
            b'{"model":"m","stream":true}',
        ),
        (
            b'{"model":"o3","max_tokens":5}',
            {"model": "o3", "host": "api.openai.com"},
            b'{"model":"o3","max_completion_tokens":5}',
        ),
        # both were said: the client knows what it does
        (
            b'{"model":"o3","max_tokens":5,"max_completion_tokens":6}',
            {"model": "o3", "host": "api.openai.com"},
            b'{"model":"o3","max_tokens":5,"max_completion_tokens":6}',
        ),
        (b'{"model":"m","max_tokens":5}', {}, b'{"model":"m","max_tokens":5}'),
        # a host nobody knows: the client's own word goes on
        (b'{"model":"o3","max_tokens":5}', {"model": "o3"}, b'{"model":"o3","max_tokens":5}'),
    ],
)
def test_only_what_has_to_change_does(body: bytes, over: dict[str, Any], expected: bytes) -> None:
    assert passed(body, **over) == expected


# --- quirks


@pytest.mark.parametrize(
    ("host", "name", "vendor"),
    [
        ("api.openai.com", "x", "openai"),
        ("mine.openai.azure.com", "x", "azure"),
        ("notopenrouter.ai", "x", "openai-compatible"),
        ("10.0.0.5", "vLLM", "vllm"),
        # the host says more than the name
        ("api.mistral.ai", "groq", "mistral"),
        ("llm.example", "rack", "openai-compatible"),
    ],
)
def test_a_vendor_is_told_by_its_host_or_its_name(host: str, name: str, vendor: str) -> None:
    assert quirk_of(make_endpoint(host, name)).vendor == vendor


def test_every_row_has_a_page_and_a_way_to_be_found() -> None:
    for row in QUIRKS:
        assert row.page.startswith("https://"), row.vendor
        assert row.hosts or row.names, row.vendor


@pytest.mark.parametrize(
    "word",
    [
        # DeepSeek: https://api-docs.deepseek.com/api/create-chat-completion
        "insufficient_system_resource",
        # Mistral: https://docs.mistral.ai/api/endpoint/chat
        "model_length",
        # OpenRouter, Mistral: https://openrouter.ai/docs/api-reference/errors
        "error",
        # Together: https://docs.together.ai/reference/chat-completions-1
        "eos",
        # vLLM, SGLang: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
        "abort",
        # Zhipu: https://docs.z.ai/api-reference/llm/chat-completion
        "sensitive",
        # Azure, with content_filter_results beside it:
        # https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
        "content_filter",
    ],
)
def test_every_odd_finish_reason_is_known(word: str) -> None:
    assert normalise_finish_reason(word) not in (None, FinishReason.OTHER)
