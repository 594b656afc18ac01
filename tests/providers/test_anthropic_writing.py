"""Requests written for Anthropic: what the API refuses never reaches it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.anthropic import CLIENT, UPSTREAM
from helmdash.providers.anthropic.abilities.schema import to_structured_schema
from helmdash.providers.anthropic.counting import AnthropicCounting
from helmdash.providers.anthropic.write_request import request_body
from helmdash.providers.errors import CannotTranslate
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

OLD = "claude-sonnet-4-20250514"  # budgets, sampling, prefill, no structured output
MIDDLE = "claude-sonnet-4-5"  # structured output and budgets
NEW = "claude-opus-4-7"  # adaptive thinking only, no sampling
NEWEST = "claude-opus-5-5"  # no forced tools either
ELSEWHERE = "glm-5"

HI = Message(role=Role.USER, parts=(Text(text="Hi"),))
ZOOM = Tool(name="zoom", parameters={"type": "object", "properties": {"by": {"type": "number"}}})
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}


def endpoint(base_url: str = "https://api.example", key: str | None = "k") -> Endpoint:
    return Endpoint(name="a", kind=ProviderKind.ANTHROPIC, base_url=base_url, api_key=key)


def say(role: Role, *parts: Part | str) -> Message:
    return Message(
        role=role,
        parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts),
    )


def write(*messages: Message, model: str = OLD, **over: Any) -> dict[str, Any]:
    return request_body(ChatRequest(model="m", messages=messages or (HI,), **over), model=model)


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("https://api.anthropic.com", "/v1/messages"),
        ("https://api.anthropic.com/", "/v1/messages"),
        ("https://api.anthropic.com/v1", "/messages"),
        ("https://proxy.example/anthropic/v1/", "/messages"),
    ],
)
def test_base_urls_work_with_and_without_v1(base_url: str, path: str) -> None:
    request = UPSTREAM.write_request(
        ChatRequest(model="m", messages=(HI,)), endpoint=endpoint(base_url), model=OLD
    )

    assert request.path == path
    assert dict(request.headers) == {
        "content-type": "application/json",
        "x-api-key": "k",
        "anthropic-version": "2023-06-01",
    }
    assert orjson.loads(request.body or b"")["model"] == OLD


def test_an_endpoint_without_a_key_sends_none() -> None:
    request = UPSTREAM.models_request(endpoint=endpoint(key=None))

    assert (request.path, request.body) == ("/v1/models?limit=1000", None)
    assert [name for name, _ in request.headers] == ["anthropic-version"]


def test_what_the_client_left_unsaid_stays_unsaid() -> None:
    assert write() == {
        "model": OLD,
        "max_tokens": 16_384,
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_system_messages_move_to_the_top_in_order() -> None:
    body = write(say(Role.SYSTEM, "One."), HI, say(Role.SYSTEM, "Two."), say(Role.SYSTEM, " "))

    assert body["system"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


def test_tool_results_and_what_the_user_adds_are_one_turn() -> None:
    body = write(
        HI,
        say(Role.ASSISTANT, ToolCall(id="functions.zoom:0", name="zoom", arguments='{"by":2}')),
        say(Role.TOOL, ToolResult(call_id="functions.zoom:0", parts=(Text(text="near"),))),
        say(Role.TOOL, ToolResult(call_id="b", parts=(), is_error=True)),
        say(Role.USER, "And now?"),
    )

    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "functions_zoom_0",
                    "name": "zoom",
                    "input": {"by": 2},
                }
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "functions_zoom_0", "content": "near"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                {"type": "text", "text": "And now?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        # nothing but instructions: they are the message
        ([say(Role.SYSTEM, "Be brief.")], [("user", "Be brief.")]),
        # nothing at all
        ([say(Role.USER, "")], [("user", "(no text)")]),
        # an empty reply is no turn
        ([HI, say(Role.ASSISTANT, ""), HI], [("user", ["Hi", "Hi"])]),
        # blank text beside words stays, empty text does not
        ([say(Role.USER, "a", "", " ", "b")], [("user", ["a", " ", "b"])]),
        # the first turn is the user's
        (
            [say(Role.ASSISTANT, "Hello"), HI],
            [
                ("user", "(the conversation begins with your message)"),
                ("assistant", "Hello"),
                ("user", "Hi"),
            ],
        ),
        # a prefill does not end in white space
        ([HI, say(Role.ASSISTANT, "{ \n")], [("user", "Hi"), ("assistant", "{")]),
    ],
)
def test_turns_are_as_the_api_wants_them(
    messages: list[Message], turns: list[tuple[str, str | list[str]]]
) -> None:
    written = [
        (turn["role"], content if isinstance(content, str) else [b["text"] for b in content])
        for turn in write(*messages)["messages"]
        for content in [turn["content"]]
    ]

    assert written == turns


def test_a_model_without_prefill_gets_a_turn_to_answer() -> None:
    body = write(HI, say(Role.ASSISTANT, "{"), model=NEW)

    assert body["messages"][-1] == {"role": "user", "content": "Go on."}


def test_images_go_as_data_or_as_urls() -> None:
    body = write(
        say(Role.USER, Image(media_type="image/gif", data="R0"), Image(url="https://x.example/a"))
    )

    assert [block["source"] for block in body["messages"][0]["content"]] == [
        {"type": "base64", "media_type": "image/gif", "data": "R0"},
        {"type": "url", "url": "https://x.example/a"},
    ]


def test_only_thoughts_with_a_seal_go_back() -> None:
    body = write(
        HI,
        say(
            Role.ASSISTANT,
            Reasoning(text="a"),
            Reasoning(text="b", signature="s"),
            Reasoning(text="Gemini's", signature="gemini:QUJD"),
            Reasoning(text="", signature="gemini:QUJD"),
            "c",
        ),
        HI,
    )

    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "b", "signature": "s"},
        {"type": "text", "text": "c"},
    ]


def test_a_part_of_another_format_is_refused() -> None:
    with pytest.raises(CannotTranslate, match="input_audio"):
        write(say(Role.USER, Other(kind="input_audio", raw={})))


def test_embeddings_are_refused() -> None:
    with pytest.raises(CannotTranslate, match="no embeddings"):
        UPSTREAM.embeddings_request(
            EmbeddingRequest(model="m", inputs=("a",)), endpoint=endpoint(), model=OLD
        )


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        (" ", {}),
        ('{"a":[1]}', {"a": [1]}),
        # what is no object is kept where the model can still see it
        ("[1]", {"_arguments": "[1]"}),
        ('{"a":', {"_arguments": '{"a":'}),
        pytest.param('{"a":' * 201 + "1" + "}" * 201, None, id="a level too many"),
        pytest.param('{"a":' * 1000 + "1" + "}" * 1000, None, id="a thousand levels"),
        # more than 64 bits
        ('{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    ],
)
def test_arguments_become_an_object(arguments: str, value: dict[str, Any] | None) -> None:
    body = write(HI, say(Role.ASSISTANT, ToolCall(id="a", name="b", arguments=arguments)), HI)

    written = body["messages"][1]["content"][0]["input"]
    assert written == (value if value is not None else {"_arguments": arguments})


@pytest.mark.parametrize(
    ("model", "over", "written"),
    [
        # OpenAI's scale goes to 2
        (OLD, {"temperature": 1.7, "top_p": 0.5}, {"temperature": 1, "top_p": 0.5}),
        # one of the two only
        (MIDDLE, {"temperature": 0.2, "top_p": 0.5, "top_k": 3}, {"temperature": 0.2, "top_k": 3}),
        (MIDDLE, {"top_p": 0.5}, {"top_p": 0.5}),
        # neither
        (NEW, {"temperature": 0.2, "top_p": 0.5, "top_k": 3}, {}),
        (ELSEWHERE, {"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        # blank stop sequences are refused
        (OLD, {"stop": ("END", "\n")}, {"stop_sequences": ["END"]}),
        # no word for these
        (OLD, {"seed": 1, "presence_penalty": 1.0, "extra": {"n": 2}}, {}),
        (OLD, {"metadata": {"user_id": "u", "job": "j"}}, {"metadata": {"user_id": "u"}}),
        (OLD, {"stream": True}, {"stream": True}),
        (OLD, {"max_tokens": 7}, {"max_tokens": 7}),
        (OLD, {"max_tokens": 0}, {"max_tokens": 0}),
        # what each generation can write
        ("claude-3-haiku-20240307", {}, {"max_tokens": 4096}),
        ("claude-3-5-sonnet-20241022", {}, {"max_tokens": 8192}),
        (ELSEWHERE, {}, {"max_tokens": 8192}),
    ],
)
def test_parameters_are_written_as_the_model_takes_them(
    model: str, over: dict[str, Any], written: dict[str, Any]
) -> None:
    body = write(model=model, **over)

    default = {} if "max_tokens" in written else {"max_tokens": body["max_tokens"]}
    assert body == {
        "model": model,
        "messages": [{"role": "user", "content": "Hi"}],
        **default,
        **written,
    }


def budget(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


@pytest.mark.parametrize(
    ("model", "over", "thinking", "effort", "max_tokens"),
    [
        (OLD, {"reasoning_effort": "high"}, budget(8192), None, 16_384),
        (OLD, {"reasoning_effort": "minimal"}, budget(1024), None, 16_384),
        (OLD, {"reasoning_effort": "none"}, None, None, 16_384),
        # the budget is a part of max_tokens, and half stays for the answer
        (OLD, {"reasoning_effort": "high", "max_tokens": 3000}, budget(1500), None, 3000),
        # too little room for the least budget
        (OLD, {"reasoning_effort": "high", "max_tokens": 2000}, None, None, 2000),
        # a budget that fits stays as it is; one that does not is cut
        (OLD, {"reasoning_tokens": 1999, "max_tokens": 2000}, budget(1999), None, 2000),
        (OLD, {"reasoning_tokens": 9000, "max_tokens": 8000}, budget(4000), None, 8000),
        (OLD, {"reasoning_tokens": 100}, budget(1024), None, 16_384),
        (OLD, {"reasoning_tokens": 20_000}, budget(20_000), None, 24_096),
        (OLD, {"reasoning_tokens": 0}, None, None, 16_384),
        # Gemini's "as you like"
        (OLD, {"reasoning_tokens": -1}, budget(4096), None, 16_384),
        # no thinking before 3.7
        ("claude-3-haiku-20240307", {"reasoning_effort": "high"}, None, None, 4096),
        # both ways on 4.6
        ("claude-opus-4-6", {"reasoning_effort": "low"}, {"type": "adaptive"}, "low", 16_384),
        ("claude-opus-4-6", {"reasoning_tokens": 2000}, budget(2000), None, 16_384),
        # no budgets any more
        (NEW, {"reasoning_effort": "minimal"}, {"type": "adaptive"}, "low", 16_384),
        (NEW, {"reasoning_tokens": 2000}, {"type": "adaptive"}, None, 16_384),
        # not every model lets thinking be switched off
        (NEW, {"reasoning_effort": "none"}, None, "low", 16_384),
        # a forced tool and thinking exclude each other
        (
            OLD,
            {
                "reasoning_effort": "high",
                "tools": (ZOOM,),
                "tool_choice": ToolChoice(mode=Choice.REQUIRED),
            },
            None,
            None,
            16_384,
        ),
    ],
)
def test_reasoning_is_asked_for_as_the_model_takes_it(
    model: str,
    over: dict[str, Any],
    thinking: dict[str, Any] | None,
    effort: str | None,
    max_tokens: int,
) -> None:
    body = write(model=model, temperature=0.3, top_k=2, **over)

    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    assert body["max_tokens"] == max_tokens
    if thinking is not None:
        assert "temperature" not in body
        assert "top_k" not in body


def test_a_tool_loop_without_its_thoughts_goes_on_without_thinking() -> None:
    call = ToolCall(id="a", name="zoom", arguments="{}")
    result = say(Role.TOOL, ToolResult(call_id="a", parts=(Text(text="near"),)))

    lost = write(HI, say(Role.ASSISTANT, call), result, reasoning_effort="low")
    sealed = write(
        HI,
        say(Role.ASSISTANT, Reasoning(text="", signature="s"), call),
        result,
        reasoning_effort="low",
    )

    foreign = write(
        HI,
        say(Role.ASSISTANT, Reasoning(text="", signature="gemini:QUJD"), call),
        result,
        reasoning_effort="low",
    )

    assert "thinking" not in lost
    assert "thinking" not in foreign
    assert sealed["thinking"] == budget(2048)


@pytest.mark.parametrize(
    ("mode", "parallel", "choice"),
    [
        (None, None, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(mode=Choice.AUTO), None, {"type": "auto"}),
        (ToolChoice(mode=Choice.NONE), False, {"type": "none"}),
        (
            ToolChoice(mode=Choice.REQUIRED),
            True,
            {"type": "any", "disable_parallel_tool_use": False},
        ),
        (ToolChoice(mode=Choice.ONE, name="zoom"), None, {"type": "tool", "name": "zoom"}),
    ],
)
def test_the_choice_of_tools_is_written(
    mode: ToolChoice | None, parallel: bool | None, choice: dict[str, Any] | None
) -> None:
    body = write(tools=(ZOOM, Tool(name="now")), tool_choice=mode, parallel_tool_calls=parallel)

    assert body.get("tool_choice") == choice
    assert body["tools"] == [
        {"name": "zoom", "input_schema": ZOOM.parameters},
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
    ]


def test_a_choice_without_tools_is_left_out() -> None:
    body = write(tool_choice=ToolChoice(mode=Choice.AUTO), parallel_tool_calls=False)

    assert "tool_choice" not in body


def test_a_model_that_cannot_be_forced_is_asked_in_words() -> None:
    one = ToolChoice(mode=Choice.ONE, name="zoom")

    body = write(say(Role.SYSTEM, "Be brief."), HI, model=NEWEST, tools=(ZOOM,), tool_choice=one)

    assert body["tool_choice"] == {"type": "auto"}
    assert [block["text"] for block in body["system"]] == [
        "Be brief.",
        "Answer by calling the tool zoom.",
    ]


def test_a_schema_goes_as_structured_output() -> None:
    body = write(model=MIDDLE, json_mode=JsonMode(schema=CLOSED, name="out"))

    assert body["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    assert "tools" not in body


@pytest.mark.parametrize(
    ("model", "mode", "schema"),
    [
        # no schema: any object
        (MIDDLE, JsonMode(), {"type": "object"}),
        # a model from before structured output
        (OLD, JsonMode(schema=CLOSED), CLOSED),
        # free keys cannot be promised
        (
            MIDDLE,
            JsonMode(schema={"type": "object", "additionalProperties": True}),
            {"type": "object", "additionalProperties": True},
        ),
    ],
)
def test_other_json_goes_through_a_forced_tool(
    model: str, mode: JsonMode, schema: dict[str, Any]
) -> None:
    body = write(model=model, json_mode=mode)

    assert body["tool_choice"] == {"type": "tool", "name": "json_reply"}
    assert [tool["input_schema"] for tool in body["tools"]] == [schema]


def test_json_beside_tools_leaves_the_choice_to_the_model() -> None:
    tools = (Tool(name="json_reply"), ZOOM)

    body = write(tools=tools, json_mode=JsonMode())

    assert body["tool_choice"] == {"type": "any"}
    assert [tool["name"] for tool in body["tools"]] == ["json_reply", "zoom", "json_reply_"]


def test_a_schema_that_no_way_takes_is_refused() -> None:
    with pytest.raises(CannotTranslate, match="object"):
        write(json_mode=JsonMode(schema={"type": "array", "items": {"type": "string"}}))


@pytest.mark.parametrize(
    ("schema", "structured"),
    [
        # objects are closed
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": False,
            },
        ),
        # limits become words
        (
            {"type": "integer", "minimum": 1, "description": "How many"},
            {"type": "integer", "description": "How many (minimum: 1)"},
        ),
        ({"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1}, None),
        ({"oneOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
        # free keys, foreign references, recursion, members nobody promised
        ({"type": "object", "additionalProperties": {"type": "string"}}, None),
        ({"type": "object"}, None),
        ({"$ref": "https://x.example/schema.json"}, None),
        (
            {
                "$defs": {
                    "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
                },
                "$ref": "#/$defs/node",
            },
            None,
        ),
        ({"not": {"type": "string"}}, None),
        ({"properties": []}, None),
    ],
)
def test_schemas_are_closed_or_refused(
    schema: dict[str, Any], structured: dict[str, Any] | None
) -> None:
    if schema.get("type") == "array":
        structured = {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "description": "maxLength: 3"},
        }

    assert to_structured_schema(schema) == structured


def test_a_long_chain_of_definitions_is_no_circle_and_no_crash() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_200)}
    schema = {"$defs": {**chain, "d1200": {"type": "null"}}, "$ref": "#/$defs/d0"}

    assert to_structured_schema(schema) == schema


# --- passing through


def passed(body: bytes, model: str) -> bytes | None:
    return CLIENT.pass_request(
        body, orjson.loads(body), endpoint=endpoint(), model=model, stream=False
    ).body


def test_a_body_that_names_the_model_already_passes_untouched() -> None:
    body = b'{ "model" : "claude-x",\n "max_tokens": 1.0 }'

    assert passed(body, "claude-x") is body


def test_only_the_models_id_changes() -> None:
    body = (
        '{ "messages": [{"role":"user","content":"a \\"model\\": \\"b\\" é"}],\n "model" : "a/x" }'
    )

    assert passed(body.encode(), "x") == body.replace('"a/x"', '"x"').encode()


def test_a_tools_own_member_of_that_name_stays() -> None:
    body = b'{ "tools": [{"input_schema": {"properties": {"model": {}}}}], "model": "a"}'

    assert passed(body, "x") == body.replace(b'"a"', b'"x"')


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"a","model":"b"}',
        # a key in escapes, with a decoy further down
        b'{"\\u006dodel":"a","metadata":{"model":"a"}}',
        # no model at all
        b'{"max_tokens":1}',
        # not a text
        b'{"model":3}',
    ],
)
def test_a_body_whose_model_is_hard_to_find_is_written_anew(body: bytes) -> None:
    assert orjson.loads(passed(body, "x") or b"") == {**orjson.loads(body), "model": "x"}


def test_a_count_is_asked_for_with_the_clients_own_bytes() -> None:
    body = b'{"model": "a/x", "messages": []}'

    request = AnthropicCounting().count_request(
        body, orjson.loads(body), endpoint=endpoint(), model="x"
    )

    assert request.path == "/v1/messages/count_tokens"
    assert request.body == b'{"model": "x", "messages": []}'


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://api.anthropic.com", True),
        ("https://api.anthropic.com/v1", True),
        ("https://api.deepseek.com/anthropic", False),
        ("https://anthropic.com.example", False),
        ("http://127.0.0.1:8080/v1", False),
    ],
)
def test_thoughts_of_other_vendors_stay_here_on_the_way_to_anthropic_itself(
    url: str, is_own: bool
) -> None:
    own = {"type": "thinking", "thinking": "a", "signature": "QUJD+/=="}
    foreign = [
        {"type": "thinking", "thinking": "b", "signature": ""},
        {"type": "thinking", "thinking": "", "signature": "gemini:QUJD"},
        {"type": "thinking", "thinking": "c"},
    ]
    said = {"type": "text", "text": '"thinking"'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [own, *foreign, said]},
        {"role": "user", "content": [said]},
        {"role": "assistant", "content": foreign},
        {"role": "user", "content": "Go on."},
    ]
    body = orjson.dumps({"model": "claude-x", "messages": messages})
    there = endpoint(url)

    sent = CLIENT.pass_request(
        body, orjson.loads(body), endpoint=there, model="claude-x", stream=False
    ).body

    kept = [messages[0], {"role": "assistant", "content": [own, said]}, messages[2], messages[4]]
    assert sent is not None
    assert orjson.loads(sent)["messages"] == (kept if is_own else messages)
    assert (sent is body) != is_own
