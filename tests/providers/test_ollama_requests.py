"""Ollama: a client's requests read, and requests for Ollama written."""

from __future__ import annotations

import json
from typing import Any

import ollama as sdk
import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.errors import BadRequest, CannotTranslate
from helmdash.providers.ollama import CLIENT, GENERATE_CLIENT, UPSTREAM
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    EmbeddingRequest,
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

ENDPOINT = Endpoint(name="ollama", kind=ProviderKind.OLLAMA, base_url="http://127.0.0.1:11434")
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}}


def say(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def ask(*messages: Message, **over: Any) -> ChatRequest:
    messages = messages or (say(Role.USER, Text(text="Hello")),)
    return ChatRequest(model="m", messages=messages, **over)


def write(request: ChatRequest, model: str = "llama3.2") -> dict[str, Any]:
    written = UPSTREAM.write_request(request, endpoint=ENDPOINT, model=model)
    body: dict[str, Any] = json.loads(written.body or b"")
    return body


def read(**body: Any) -> ChatRequest:
    return CLIENT.read_request({"model": "m", **body}, model=None, stream=None)


def passed(body: bytes, *, stream: bool = True, model: str = "llama3.2") -> bytes:
    request = CLIENT.pass_request(
        body, json.loads(body), endpoint=ENDPOINT, model=model, stream=stream
    )
    return request.body or b""


# --- where a request goes


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("http://localhost:11434", "/api/chat"),
        ("http://localhost:11434/", "/api/chat"),
        ("http://localhost:11434/api", "/chat"),
        ("http://localhost:11434/api/", "/chat"),
        ("http://proxy/ollama", "/api/chat"),
    ],
)
def test_the_base_url_may_end_in_api(base_url: str, path: str) -> None:
    endpoint = Endpoint(name="o", kind=ProviderKind.OLLAMA, base_url=base_url)

    assert UPSTREAM.write_request(ask(), endpoint=endpoint, model="m").path == path


def test_a_key_is_sent_where_there_is_one() -> None:
    keyed = Endpoint(name="o", kind=ProviderKind.OLLAMA, base_url="https://ollama.com", api_key="k")

    for endpoint, expected in ((keyed, True), (ENDPOINT, False)):
        request = UPSTREAM.models_request(endpoint=endpoint)
        assert (("authorization", "Bearer k") in request.headers) is expected
        assert (request.path, request.body) == ("/api/tags", None)


def test_a_translated_completion_is_a_chat_and_a_native_one_stays_what_it_is() -> None:
    body = b'{"model":"m","prompt":"x"}'
    request = GENERATE_CLIENT.read_request(json.loads(body), model=None, stream=None)

    assert UPSTREAM.write_request(request, endpoint=ENDPOINT, model="m").path == "/api/chat"
    native = GENERATE_CLIENT.pass_request(
        body, json.loads(body), endpoint=ENDPOINT, model="m", stream=True
    )
    assert (native.path, native.body) == ("/api/generate", body)


# --- a client's own bytes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # nothing to change
        (b'{ "model" : "llama3.2", "messages":[] }', b'{ "model" : "llama3.2", "messages":[] }'),
        # in its place, everything around it as it was
        (
            b'{"messages":[{"content":"\\"model\\": \\"x\\""}],\n "model" : "ollama/llama3.2" }',
            b'{"messages":[{"content":"\\"model\\": \\"x\\""}],\n "model" : "llama3.2" }',
        ),
        # the same name further down is none of ours
        (
            b'{"model":"a","options":{"model":"b"}}',
            b'{"model":"llama3.2","options":{"model":"b"}}',
        ),
        # twice: written anew, since nobody knows which one the server takes
        (b'{"model":"a", "model":"b"}', b'{"model":"llama3.2"}'),
        # Go takes other letters for the same name, the long s among them
        (b'{"x":1, "model":"a", "Model":"b"}', b'{"x":1,"model":"llama3.2"}'),
        (b'{"model":"llama3.2", "\xc5\xbftream":false}', b'{"model":"llama3.2"}'),
        (b'{"model":"a", "MODEL":"b", "stream":true}', b'{"model":"llama3.2","stream":true}'),
    ],
)
def test_only_the_model_of_a_clients_bytes_is_changed(body: bytes, expected: bytes) -> None:
    assert passed(body) == expected


def test_whether_to_stream_is_said_where_the_body_says_otherwise() -> None:
    assert json.loads(passed(b'{"model":"llama3.2"}', stream=False))["stream"] is False
    assert passed(b'{"model":"llama3.2","stream":false}') == b'{"model":"llama3.2","stream":true}'


# --- what is written


def test_a_whole_request_is_written_in_ollamas_words() -> None:
    request = ask(
        say(Role.SYSTEM, Text(text="Be brief.")),
        say(Role.USER, Text(text="Tide?"), Image(media_type="image/png", data="aGk=")),
        say(
            Role.ASSISTANT,
            Reasoning(text="Hm."),
            ToolCall(id="call_0_get_tide", name="get_tide", arguments='{"port":"Brest"}'),
            ToolCall(id="toolu_1", name="now", arguments=""),
        ),
        say(
            Role.TOOL,
            ToolResult(call_id="call_0_get_tide", parts=(Text(text="low"),)),
            ToolResult(call_id="toolu_1", parts=(Text(text="noon"),)),
        ),
        stream=True,
        tools=(Tool(name="get_tide", description="The tide", parameters=SCHEMA), Tool(name="now")),
        max_tokens=64,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop=("END",),
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning_effort="low",
    )

    body = write(request)

    assert body == {
        "model": "llama3.2",
        "stream": True,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Tide?", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [
                    {"function": {"name": "get_tide", "arguments": {"port": "Brest"}}},
                    {"id": "toolu_1", "function": {"name": "now", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "low", "tool_name": "get_tide"},
            {
                "role": "tool",
                "content": "noon",
                "tool_name": "now",
                "tool_call_id": "toolu_1",
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_tide",
                    "description": "The tide",
                    "parameters": SCHEMA,
                },
            },
            {
                "type": "function",
                "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
            },
        ],
        "think": True,
        "options": {
            "num_predict": 64,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "stop": ["END"],
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
        },
    }
    for message in body["messages"][2:]:
        sdk.Message.model_validate(message)


@pytest.mark.parametrize(
    ("mode", "written"),
    [(None, None), (JsonMode(), "json"), (JsonMode(schema=SCHEMA), SCHEMA)],
)
def test_json_mode_is_a_format(mode: JsonMode | None, written: Any) -> None:
    assert write(ask(json_mode=mode)).get("format") == written


@pytest.mark.parametrize(
    ("model", "effort", "tokens", "written"),
    [
        ("qwen3", None, None, None),
        ("qwen3", "none", None, False),
        ("qwen3", "minimal", None, True),
        ("qwen3", None, 2000, True),
        # the one family that takes levels
        ("gpt-oss:20b", "high", None, "high"),
        ("someone/gpt-oss", "minimal", None, "low"),
        ("gpt-oss:20b", "none", None, False),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(
    model: str, effort: str | None, tokens: int | None, written: Any
) -> None:
    body = write(ask(reasoning_effort=effort, reasoning_tokens=tokens), model)

    assert body.get("think") == written


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        (None, ["f", "g"]),
        (ToolChoice(mode=Choice.AUTO), ["f", "g"]),
        (ToolChoice(mode=Choice.REQUIRED), ["f", "g"]),
        (ToolChoice(mode=Choice.ONE, name="g"), ["g"]),
        (ToolChoice(mode=Choice.NONE), []),
    ],
)
def test_a_tool_choice_is_said_by_what_is_offered(
    choice: ToolChoice | None, offered: list[str]
) -> None:
    body = write(ask(tools=(Tool(name="f"), Tool(name="g")), tool_choice=choice))

    assert [tool["function"]["name"] for tool in body.get("tools", [])] == offered


def test_images_by_url_and_foreign_parts_cannot_be_sent() -> None:
    with pytest.raises(CannotTranslate, match="does not fetch"):
        write(ask(say(Role.USER, Image(url="https://example.org/a.png"))))
    with pytest.raises(CannotTranslate, match="input_audio"):
        write(ask(say(Role.USER, Other(kind="input_audio", raw={}))))


def test_embeddings_are_asked_for_in_one_request() -> None:
    request = EmbeddingRequest(model="e", inputs=("a", "b"), dimensions=8)

    written = UPSTREAM.embeddings_request(request, endpoint=ENDPOINT, model="e")

    assert written.path == "/api/embed"
    assert json.loads(written.body or b"") == {"model": "e", "input": ["a", "b"], "dimensions": 8}


def test_what_was_written_reads_back_as_it_was_asked() -> None:
    request = ChatRequest(
        model="llama3.2",
        messages=(
            say(Role.SYSTEM, Text(text="Be brief.")),
            say(Role.USER, Text(text="Tide?"), Image(media_type="image/png", data="iVBORw0KGgo=")),
            say(Role.ASSISTANT, ToolCall(id="call_0_f", name="f", arguments='{"a":1}')),
            say(Role.TOOL, ToolResult(call_id="call_0_f", name="f", parts=(Text(text="low"),))),
        ),
        tools=(Tool(name="f", parameters=SCHEMA),),
        json_mode=JsonMode(schema=SCHEMA),
        max_tokens=5,
        reasoning_effort="none",
    )

    assert CLIENT.read_request(write(request), model=None, stream=None) == request


# --- what is read


@pytest.mark.parametrize(
    ("body", "url", "expected"),
    [({}, None, True), ({"stream": False}, None, False), ({"stream": True}, False, False)],
)
def test_a_request_streams_unless_it_says_no(
    body: dict[str, Any], url: bool | None, expected: bool
) -> None:
    for client_format in (CLIENT, GENERATE_CLIENT):
        request = client_format.read_request({"model": "m", **body}, model=None, stream=url)
        assert request.stream is expected


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"model": ""}, "model"),
        ({"model": 3}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": [1]}]}, "messages[0].images"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f", "parameters": 1}}]}, "tools[0].function.parameters"),
        ({"format": "yaml"}, "format"),
        ({"think": "hard"}, "think"),
        ({"options": []}, "options"),
        ({"options": {"num_predict": "many"}}, "options.num_predict"),
        ({"options": {"temperature": True}}, "options.temperature"),
        ({"options": {"stop": [1]}}, "options.stop"),
    ],
)
def test_a_member_of_the_wrong_kind_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(**body)

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("think", "effort"),
    [(None, None), (True, "medium"), (False, "none"), ("high", "high")],
)
def test_thinking_is_an_effort(think: Any, effort: str | None) -> None:
    assert read(think=think).reasoning_effort == effort


@pytest.mark.parametrize("limit", [-1, -2, 0])
def test_a_limit_of_no_tokens_is_none(limit: int) -> None:
    assert read(options={"num_predict": limit}).max_tokens is None


def test_an_empty_chat_asks_for_the_model_alone() -> None:
    request = read(messages=[], keep_alive=0)

    assert request.messages == ()
    assert request.extra == {"keep_alive": 0}


def test_answers_find_their_calls() -> None:
    calls: list[dict[str, Any]] = [
        {"function": {"name": name, "arguments": {}}} for name in ("f", "g", "f")
    ]
    calls[1]["id"] = "mine"
    request = read(
        messages=[
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "content": "1", "tool_call_id": "mine"},
            {"role": "tool", "content": "2", "name": "f"},
            {"role": "tool", "content": "3"},
            {"role": "tool", "content": "4", "tool_name": "unheard_of"},
        ]
    )

    results = [part for one in request.messages[1:] for part in one.parts]
    assert [(part.call_id, part.name) for part in results if isinstance(part, ToolResult)] == [
        ("mine", "g"),
        ("call_0_f", "f"),
        ("call_2_f", "f"),
        ("call_3_unheard_of", "unheard_of"),
    ]


def test_a_completion_with_an_image_is_one_message() -> None:
    request = GENERATE_CLIENT.read_request(
        {
            "model": "m",
            "prompt": "What is it?",
            "images": ["/9j/4AAQ"],
            "template": "{{ .Prompt }}",
        },
        model=None,
        stream=None,
    )

    assert request.messages == (
        say(Role.USER, Text(text="What is it?"), Image(media_type="image/jpeg", data="/9j/4AAQ")),
    )
    assert request.extra == {"template": "{{ .Prompt }}"}
