"""Gemini: a client's requests read, and requests for Gemini written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google import genai

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.errors import BadRequest, CannotTranslate
from helmdash.providers.gemini import ARRAY_CLIENT, CLIENT, UPSTREAM
from helmdash.providers.gemini.counting import GeminiCounting
from helmdash.providers.gemini.schema import to_json_schema
from helmdash.providers.gemini.thinking import thinking_config
from helmdash.providers.protocols import HttpRequest
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

ENDPOINT = Endpoint(
    name="gemini",
    kind=ProviderKind.GEMINI,
    base_url="https://generativelanguage.googleapis.com",
    api_key="AIza-example",
)
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}


def say(role: Role, *parts: Part) -> Message:
    return Message(role=role, parts=parts)


def ask(*messages: Message, **over: Any) -> ChatRequest:
    messages = messages or (say(Role.USER, Text(text="Hello")),)
    return ChatRequest(model="m", messages=messages, **over)


def write(request: ChatRequest, model: str = "gemini-2.5-flash") -> dict[str, Any]:
    written = UPSTREAM.write_request(request, endpoint=ENDPOINT, model=model)
    body: dict[str, Any] = json.loads(written.body or b"")
    return body


def read(**body: Any) -> ChatRequest:
    return CLIENT.read_request(body, model="gemini-2.5-flash", stream=False)


def config(**members: Any) -> ChatRequest:
    return read(contents=[], generationConfig=members)


# --- where a request goes


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        # no version: the newest one is put in
        ("https://example.org", "/v1beta/models/m:generateContent"),
        ("https://example.org/", "/v1beta/models/m:generateContent"),
        # a version of its own
        ("https://example.org/v1beta", "/models/m:generateContent"),
        ("https://example.org/v1beta/", "/models/m:generateContent"),
        ("https://example.org/v1", "/models/m:generateContent"),
        # Vertex: what follows the version belongs to the base URL
        (
            "https://example.org/v1/projects/p/locations/l/publishers/google",
            "/models/m:generateContent",
        ),
    ],
)
def test_the_base_url_may_name_the_version(base_url: str, path: str) -> None:
    endpoint = Endpoint(name="g", kind=ProviderKind.GEMINI, base_url=base_url)

    assert UPSTREAM.write_request(ask(), endpoint=endpoint, model="m").path == path


@pytest.mark.parametrize(
    ("model", "resource"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/my-tune", "tunedModels/my-tune"),
        # a colon would start the name of a method
        ("m:streamGenerateContent", "models/m%3AstreamGenerateContent"),
        ("m@001", "models/m%40001"),
    ],
)
def test_the_model_stands_in_the_path(model: str, resource: str) -> None:
    written = UPSTREAM.write_request(ask(), endpoint=ENDPOINT, model=model)

    assert written.path == f"/v1beta/{resource}:generateContent"


@pytest.mark.parametrize(
    "model",
    ["", "..", "a/../b", "a..b", "/m", "m/", "a//b", "m?key=1", "m#x", "m%2e", "m n", "mé", "."],
)
def test_an_id_that_could_change_the_address_is_refused(model: str) -> None:
    with pytest.raises(CannotTranslate):
        UPSTREAM.write_request(ask(), endpoint=ENDPOINT, model=model)
    with pytest.raises(CannotTranslate):
        CLIENT.pass_request(b"{}", {}, endpoint=ENDPOINT, model=model, stream=False)


def test_the_key_goes_into_a_header_and_never_into_the_address() -> None:
    requests: list[HttpRequest] = [
        UPSTREAM.write_request(ask(), endpoint=ENDPOINT, model="m"),
        UPSTREAM.models_request(endpoint=ENDPOINT),
        GeminiCounting().count_request(b"{}", {}, endpoint=ENDPOINT, model="m"),
    ]

    for request in requests:
        assert ("x-goog-api-key", "AIza-example") in request.headers
        assert "AIza" not in request.path


def test_a_stream_is_asked_for_as_events() -> None:
    written = UPSTREAM.write_request(ask(stream=True), endpoint=ENDPOINT, model="m")

    assert written.path == "/v1beta/models/m:streamGenerateContent?alt=sse"


def test_a_clients_bytes_pass_as_they_are() -> None:
    body = b'{ "contents":[],  "x": 1 }'

    for client_format, query in ((CLIENT, "?alt=sse"), (ARRAY_CLIENT, "")):
        passed = client_format.pass_request(body, {}, endpoint=ENDPOINT, model="m", stream=True)
        assert passed.body == body
        assert passed.path == f"/v1beta/models/m:streamGenerateContent{query}"


def test_a_count_passes_but_for_the_model_named_inside() -> None:
    def count(body: bytes) -> HttpRequest:
        return GeminiCounting().count_request(body, json.loads(body), endpoint=ENDPOINT, model="m")

    plain = b'{"contents": [] }'
    inner = b'{"generateContentRequest":{"model":"models/mine","contents":[]}}'

    assert count(plain).body == plain
    counted = count(inner)
    assert counted.path == "/v1beta/models/m:countTokens"
    assert json.loads(counted.body or b"") == {
        "generateContentRequest": {"model": "models/m", "contents": []}
    }


def test_embeddings_are_asked_for_in_one_request() -> None:
    request = EmbeddingRequest(model="e", inputs=("a", "b"), dimensions=8)

    written = UPSTREAM.embeddings_request(request, endpoint=ENDPOINT, model="e")

    assert written.path == "/v1beta/models/e:batchEmbedContents"
    assert json.loads(written.body or b"") == {
        "requests": [
            {
                "model": "models/e",
                "content": {"parts": [{"text": text}]},
                "outputDimensionality": 8,
            }
            for text in ("a", "b")
        ]
    }


# --- what is written


def test_a_whole_request_is_written_in_geminis_words() -> None:
    request = ask(
        say(Role.SYSTEM, Text(text="Be brief.")),
        say(Role.USER, Text(text="Tide?"), Image(media_type="image/png", data="aGk=")),
        say(Role.SYSTEM, Text(text="Answer in French.")),
        tools=(Tool(name="get_tide", description="The tide", parameters=SCHEMA),),
        tool_choice=ToolChoice(mode=Choice.ONE, name="get_tide"),
        max_tokens=64,
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        stop=("END",),
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        json_mode=JsonMode(schema=SCHEMA),
    )

    body = write(request)

    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Answer in French."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Tide?"},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                ],
            }
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "get_tide",
                        "description": "The tide",
                        "parametersJsonSchema": SCHEMA,
                    }
                ]
            }
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_tide"]}
        },
        "generationConfig": {
            "maxOutputTokens": 64,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "stopSequences": ["END"],
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
    }
    genai.types.GenerationConfig.model_validate(body["generationConfig"])
    genai.types.Content.model_validate(body["contents"][0])
    genai.types.Tool.model_validate(body["tools"][0])


def test_calls_made_at_once_are_answered_in_one_message() -> None:
    request = ask(
        say(Role.USER, Text(text="Go")),
        say(
            Role.ASSISTANT,
            ToolCall(id="toolu_1", name="f", arguments='{"a":1}'),
            ToolCall(id="call_1_g", name="g", arguments=""),
        ),
        say(Role.TOOL, ToolResult(call_id="toolu_1", parts=(Text(text="one"),))),
        say(
            Role.TOOL,
            ToolResult(call_id="call_1_g", parts=(Text(text='{"b":2}'),), name="g"),
        ),
        say(Role.USER, Text(text="And?")),
    )

    contents = write(request)["contents"]

    assert contents[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "toolu_1", "name": "f", "args": {"a": 1}}},
                # an id that we derived was never Gemini's, so it goes back without one
                {"functionCall": {"name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "toolu_1",
                        "name": "f",
                        "response": {"output": "one"},
                    }
                },
                {"functionResponse": {"name": "g", "response": {"b": 2}}},
                {"text": "And?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("result", "response"),
    [
        (
            ToolResult(call_id="c", name="f", parts=(Text(text="no"),), is_error=True),
            {"error": "no"},
        ),
        (ToolResult(call_id="c", name="f", parts=(Text(text="[1]"),)), {"output": "[1]"}),
        (ToolResult(call_id="c", name="f", parts=()), {"output": ""}),
        # an object nested too deeply to be written anew stays text
        (
            ToolResult(call_id="c", name="f", parts=(Text(text='{"a":' * 300 + "1" + "}" * 300),)),
            {"output": '{"a":' * 300 + "1" + "}" * 300},
        ),
    ],
)
def test_a_tools_answer_is_an_object(result: ToolResult, response: dict[str, Any]) -> None:
    body = write(ask(say(Role.TOOL, result)))

    assert body["contents"][0]["parts"][0]["functionResponse"]["response"] == response


def test_an_image_in_a_tools_answer_goes_with_it() -> None:
    result = ToolResult(
        call_id="c", name="f", parts=(Text(text="see"), Image(media_type="image/png", data="aGk="))
    )

    response = write(ask(say(Role.TOOL, result)))["contents"][0]["parts"][0]["functionResponse"]

    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]
    genai.types.FunctionResponse.model_validate(response)


def test_an_answer_to_no_known_call_cannot_be_sent() -> None:
    with pytest.raises(CannotTranslate, match="name of the function"):
        write(ask(say(Role.TOOL, ToolResult(call_id="c", parts=()))))


def test_what_only_another_format_knows_cannot_be_sent() -> None:
    with pytest.raises(CannotTranslate, match="input_audio"):
        write(ask(say(Role.USER, Other(kind="input_audio", raw={}))))


def test_a_schema_that_nests_too_deeply_cannot_be_sent() -> None:
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"items": schema}

    with pytest.raises(CannotTranslate, match="deep"):
        write(ask(tools=(Tool(name="f", parameters=schema),)))


def test_an_image_by_url_is_a_file() -> None:
    body = write(ask(say(Role.USER, Image(url="https://example.org/a.JPG?x=1"))))

    assert body["contents"][0]["parts"] == [
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a.JPG?x=1"}}
    ]


def test_a_system_message_alone_becomes_the_question() -> None:
    body = write(ask(say(Role.SYSTEM, Text(text="Say hello."))))

    assert body == {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (None, None),
        (ToolChoice(mode=Choice.AUTO), {"mode": "AUTO"}),
        (ToolChoice(mode=Choice.NONE), {"mode": "NONE"}),
        (ToolChoice(mode=Choice.REQUIRED), {"mode": "ANY"}),
        (ToolChoice(mode=Choice.ONE, name="f"), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_a_tool_choice_is_a_mode(choice: ToolChoice | None, written: Any) -> None:
    body = write(ask(tools=(Tool(name="f"),), tool_choice=choice))

    assert body.get("toolConfig", {}).get("functionCallingConfig") == written


@pytest.mark.parametrize(
    ("model", "effort", "tokens", "expected"),
    [
        # 2.5 takes budgets; Pro cannot stop thinking
        ("gemini-2.5-flash", "none", None, {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", None, {"thinkingBudget": 128}),
        ("gemini-2.5-flash", "high", None, {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-flash", None, 2000, {"thinkingBudget": 2000, "includeThoughts": True}),
        # 3 takes levels, each model its own
        (
            "gemini-3-pro-preview",
            "medium",
            None,
            {"thinkingLevel": "high", "includeThoughts": True},
        ),
        (
            "gemini-3.1-pro-preview",
            "medium",
            None,
            {"thinkingLevel": "medium", "includeThoughts": True},
        ),
        ("gemini-3-flash-preview", "none", None, {"thinkingLevel": "minimal"}),
        (
            "models/gemini-3-flash-preview",
            None,
            5000,
            {"thinkingLevel": "medium", "includeThoughts": True},
        ),
        # these do not think, or are not known
        ("gemini-2.0-flash", "high", None, None),
        ("gemini-2.5-flash-image", "high", None, None),
        ("gemma-3-27b-it", "high", None, None),
        # nothing asked, or a word that is none
        ("gemini-2.5-flash", None, None, None),
        ("gemini-2.5-flash", "huge", None, None),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(
    model: str, effort: str | None, tokens: int | None, expected: Any
) -> None:
    assert thinking_config(model, effort, tokens) == expected


# --- signatures


def call_parts(model: str, *parts: Part) -> list[dict[str, Any]]:
    request = ask(say(Role.USER, Text(text="Go")), say(Role.ASSISTANT, *parts))
    found: list[dict[str, Any]] = write(request, model)["contents"][1]["parts"]
    return found


def test_a_signature_goes_back_on_the_call_it_came_with() -> None:
    parts = call_parts(
        "gemini-3-pro-preview",
        Reasoning(text="", signature="gemini:c2ln"),
        ToolCall(id="a", name="f", arguments="{}"),
        ToolCall(id="b", name="g", arguments="{}"),
    )

    assert [part.get("thoughtSignature") for part in parts] == ["c2ln", None]


def test_the_first_call_of_another_model_gets_the_vendors_stand_in() -> None:
    calls = (ToolCall(id="a", name="f", arguments="{}"), ToolCall(id="b", name="g", arguments="{}"))
    foreign = Reasoning(text="Hm.", signature="EqQBCkYIAxgC")

    newer = call_parts("gemini-3-flash-preview", foreign, *calls)
    older = call_parts("gemini-2.5-flash", foreign, *calls)

    stand_in = "skip_thought_signature_validator"
    assert [part.get("thoughtSignature") for part in newer] == [stand_in, None]
    assert [part.get("thoughtSignature") for part in older] == [None, None]


def test_only_thoughts_that_gemini_signed_go_back_to_it() -> None:
    parts = call_parts(
        "gemini-2.5-flash",
        Reasoning(text="unsigned"),
        Reasoning(text="foreign", signature="EqQBCkYIAxgC"),
        Reasoning(text="own", signature="gemini:c2ln"),
        Text(text="Hi"),
        Reasoning(text="", signature="gemini:ZW5k"),
    )

    assert parts == [
        {"text": "own", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "Hi"},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


# --- what is read


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"contents": "hi"}, "contents"),
        ({"contents": [1]}, "contents[0]"),
        ({"contents": [{"role": "system", "parts": []}]}, "contents[0].role"),
        ({"contents": [{"parts": ["x"]}]}, "contents[0].parts[0]"),
        ({"contents": [{"parts": 3}]}, "contents[0].parts"),
        ({"systemInstruction": 5}, "systemInstruction"),
        ({"generationConfig": []}, "generationConfig"),
        ({"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature"),
        ({"generation_config": {"max_output_tokens": 1.5}}, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"stopSequences": [1]}}, "generationConfig.stopSequences"),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": "many"}}},
            "generationConfig.thinkingConfig.thinkingBudget",
        ),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}},
            "toolConfig.functionCallingConfig.mode",
        ),
    ],
)
def test_a_member_of_the_wrong_kind_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(**body)

    assert caught.value.field == field


def test_a_request_without_a_model_says_where_to_name_it() -> None:
    with pytest.raises(BadRequest) as caught:
        CLIENT.read_request({}, model=None, stream=None)

    assert caught.value.field == "model"


def test_answers_find_their_calls_by_id_then_by_name_and_order() -> None:
    request = read(
        contents=[
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "f"}},
                    {"functionCall": {"name": "f", "id": "mine"}},
                    {"functionCall": {"name": "f"}},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"name": "f", "id": "mine", "response": {"result": 2}}},
                    {"functionResponse": {"name": "f", "response": {"error": "no"}}},
                    {"functionResponse": {"name": "f", "response": {"a": 1, "b": 2}}},
                ],
            },
        ]
    )

    results = [part for part in request.messages[1].parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == ["mine", "call_0_f", "call_2_f"]
    assert [result.parts for result in results] == [
        (Text(text="2"),),
        (Text(text="no"),),
        (Text(text='{"a":1,"b":2}'),),
    ]
    assert [result.is_error for result in results] == [False, True, False]
    assert request.messages[1].role is Role.TOOL


def test_an_id_that_was_derived_is_the_same_one_turn_later() -> None:
    first = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
    before = read(contents=[first, answer])
    reply = UPSTREAM.read_reply(
        json.dumps({"candidates": [{"content": first}]}).encode(), request=before
    )

    after = read(contents=[first, answer, first])

    assert reply.tool_calls[0].id == "call_1_f"
    assert after.messages[-1].parts == reply.parts


@pytest.mark.parametrize(
    ("mode", "allowed", "choice", "tools"),
    [
        ("AUTO", [], ToolChoice(mode=Choice.AUTO), ["f", "g"]),
        ("NONE", [], ToolChoice(mode=Choice.NONE), ["f", "g"]),
        ("ANY", [], ToolChoice(mode=Choice.REQUIRED), ["f", "g"]),
        ("any", ["g"], ToolChoice(mode=Choice.ONE, name="g"), ["f", "g"]),
        # of several allowed ones any will do, and no other
        ("ANY", ["g", "h"], ToolChoice(mode=Choice.REQUIRED), ["g"]),
        ("MODE_UNSPECIFIED", [], None, ["f", "g"]),
    ],
)
def test_a_mode_is_a_tool_choice(
    mode: str, allowed: list[str], choice: ToolChoice | None, tools: list[str]
) -> None:
    request = read(
        tools=[{"function_declarations": [{"name": "f"}, {"name": "g"}]}, {"googleSearch": {}}],
        tool_config={"function_calling_config": {"mode": mode, "allowed_function_names": allowed}},
    )

    assert request.tool_choice == choice
    assert [tool.name for tool in request.tools] == tools
    assert request.extra["tools"] == [{"googleSearch": {}}]


@pytest.mark.parametrize(
    ("thinking", "effort", "tokens"),
    [
        ({"thinkingBudget": 0}, "none", None),
        ({"thinkingBudget": -1}, None, None),
        ({"thinkingBudget": 512}, None, 512),
        ({"thinkingLevel": "LOW"}, "low", None),
        ({"thinking_level": "high"}, "high", None),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, None, None),
    ],
)
def test_a_thinking_config_is_an_effort_or_a_limit(
    thinking: dict[str, Any], effort: str | None, tokens: int | None
) -> None:
    request = config(thinkingConfig=thinking)

    assert (request.reasoning_effort, request.reasoning_tokens) == (effort, tokens)


def test_a_json_schema_is_taken_before_geminis_own() -> None:
    own = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}

    both = config(
        responseMimeType="application/json", responseSchema=own, responseJsonSchema=SCHEMA
    )
    one = config(responseMimeType="application/json", responseSchema=own)
    bare = config(responseMimeType="application/json")
    text = config(responseMimeType="text/plain", responseSchema=own)

    assert both.json_mode == JsonMode(schema=SCHEMA)
    assert one.json_mode == JsonMode(
        schema={"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    )
    assert bare.json_mode == JsonMode()
    assert text.json_mode is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # a property may be called like a member of the schema language
        (
            {"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "min_items": {}}},
            {"type": "object", "properties": {"type": {"type": "string"}, "min_items": {}}},
        ),
        ({"type": "ARRAY", "max_items": "3"}, {"type": "array", "maxItems": 3}),
        # more digits than 64 bits have, and than Python reads, are no count
        (
            {"type": "ARRAY", "maxItems": "9" * 5000, "minItems": "٣"},
            {"type": "array", "maxItems": "9" * 5000, "minItems": "٣"},
        ),
        (
            {"any_of": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
        ),
        (
            {"type": "STRING", "format": "enum", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        # what has no counterpart goes, what is JSON Schema already stays
        ({"type": "OBJECT", "propertyOrdering": ["a"]}, {"type": "object"}),
        (SCHEMA, SCHEMA),
        (
            {"type": "INTEGER", "format": "int32", "example": 3},
            {"type": "integer", "format": "int32", "examples": [3]},
        ),
        (None, None),
    ],
)
def test_geminis_schemas_become_json_schema(schema: Any, expected: Any) -> None:
    assert to_json_schema(schema) == expected


def test_what_gemini_wrote_reads_back_as_it_was_asked() -> None:
    request = ask(
        say(Role.SYSTEM, Text(text="Be brief.")),
        say(Role.USER, Text(text="Tide?"), Image(media_type="image/png", data="aGk=")),
        say(Role.ASSISTANT, ToolCall(id="call_0_f", name="f", arguments='{"a":1}')),
        say(Role.TOOL, ToolResult(call_id="call_0_f", name="f", parts=(Text(text="low"),))),
        tools=(Tool(name="f", parameters=SCHEMA),),
        tool_choice=ToolChoice(mode=Choice.REQUIRED),
        max_tokens=5,
        stop=("a",),
        json_mode=JsonMode(schema=SCHEMA),
    )

    assert CLIENT.read_request(write(request), model="m", stream=False) == request


@pytest.mark.parametrize("member", ["cachedContent", "cached_content"])
def test_what_goes_on_from_cached_content_is_a_fragment(member: str) -> None:
    said = {"contents": [{"role": "user", "parts": [{"text": "Go on."}]}]}

    assert read(**said, **{member: "cachedContents/abc"}).is_fragment
    assert not read(**said).is_fragment
