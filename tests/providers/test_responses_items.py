"""The Responses API between bytes and values: every item there and back, in the SDK's own types."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any

import openai
import pytest
from pydantic import Field, TypeAdapter

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.openai_responses import CLIENT, SPOKEN
from helmdash.providers.openai_responses.items.calls import flat_name
from helmdash.providers.openai_responses.items.compactions import written_summary
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.collecting import collect, events_of
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Ended,
    Event,
    Failed,
    Finished,
    Message,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Role,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    ToolResult,
    UsageSeen,
    WireError,
)

pytestmark = pytest.mark.one_database

PATCH = "*** Begin Patch\nü"
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "apply_patch",
     "format": {"type": "grammar", "syntax": "lark", "definition": "start: PATCH"}},
    {"type": "namespace", "name": "agents", "description": "Others.", "tools": [
        {"type": "function", "name": "spawn"}, {"type": "custom", "name": "note"}]},
    {"type": "local_shell"},
    {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    {"type": "file_search", "vector_store_ids": ["vs"]},
]  # fmt: skip
# Items of calls, the call that each is, and the result that a client sends back.
CALLS: list[tuple[dict[str, Any], ToolCall]] = [
    (
        {"type": "function_call", "name": "look", "arguments": '{"a":1}'},
        ToolCall(id="c", name="look", arguments='{"a":1}'),
    ),
    (
        {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH},
        ToolCall(
            id="c",
            name="apply_patch",
            arguments=json.dumps({"input": PATCH}, separators=(",", ":"), ensure_ascii=False),
        ),
    ),
    (
        {"type": "function_call", "namespace": "agents", "name": "spawn", "arguments": "{}"},
        ToolCall(id="c", name="agents__spawn", arguments="{}"),
    ),
    (
        {"type": "custom_tool_call", "namespace": "agents", "name": "note", "input": "x"},
        ToolCall(id="c", name="agents__note", arguments='{"input":"x"}'),
    ),
    (
        {
            "type": "local_shell_call",
            "action": {"type": "exec", "env": {}, "command": ["ls"]},
        },
        ToolCall(id="c", name="local_shell", arguments='{"type":"exec","env":{},"command":["ls"]}'),
    ),
    (
        {"type": "tool_search_call", "arguments": {"q": "x"}, "execution": "client"},
        ToolCall(id="c", name="tool_search", arguments='{"q":"x"}'),
    ),
]
STARTED = Started(id="up", model="m-1")
USED = UsageSeen(usage={"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15})


@cache
def event_type() -> TypeAdapter[Any]:
    """An event as the SDK has it; not made while tests are collected, which loads all of it."""
    return TypeAdapter(
        Annotated[openai.types.responses.ResponseStreamEvent, Field(discriminator="type")]
    )


def read(**body: Any) -> ChatRequest:
    return CLIENT.read_request({"model": "m", "input": "Hi", **body}, model=None, stream=None)


def answer(request: ChatRequest | None = None) -> ReplyContext:
    return ReplyContext(call_id="call_7", model="m", created=1, request=request)


def written(events: list[Event], request: ChatRequest | None = None) -> list[dict[str, Any]]:
    """The events that a client gets; each is one of the SDK's own, and they are numbered."""
    asked = request or read(tools=TOOLS)
    writer = CLIENT.stream_writer(answer=answer(asked), request=asked)
    data = b"".join([*(writer.write(event) for event in events), writer.close()])
    found = []
    for block in data.decode().split("\n\n")[:-1]:
        name, line = block.split("\n")
        event = json.loads(line.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        event_type().validate_python(event)
        found.append(event)
    assert [event["sequence_number"] for event in found] == [*range(len(found))]
    return found


def call_events(call: ToolCall, index: int = 0) -> list[Event]:
    return [
        ToolCallStarted(index=index, id=call.id, name=call.name),
        *(ToolCallDelta(index=index, arguments=each) for each in call.arguments),
    ]


@pytest.mark.parametrize(("item", "call"), CALLS)
def test_a_call_is_the_same_in_a_history_a_stream_and_a_reply(
    item: dict[str, Any], call: ToolCall
) -> None:
    item = {"call_id": "c", **item}

    history = read(tools=TOOLS, input=[item]).messages
    events = written([STARTED, *call_events(call), Finished(reason="stop"), USED, Ended()])
    done = events[-1]["response"]["output"]
    again = CLIENT.read_request({"model": "m", "input": done}, model=None, stream=None).messages
    streamed = b"".join(
        b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events
    )
    request = read()
    reply = collect(SPOKEN.stream_reader(request=request).feed(streamed))

    assert history == again == (Message(role=Role.ASSISTANT, parts=(call,)),)
    assert {name: done[0][name] for name in item} == item
    assert reply.tool_calls == (call,)
    whole = SPOKEN.read_reply(json.dumps(events[-1]["response"]).encode(), request=request)
    assert (whole.tool_calls, whole.finish_reason) == ((call,), "completed")


def test_tools_are_functions_with_a_way_back() -> None:
    request = read(tools=TOOLS)

    assert [tool.name for tool in request.tools] == [
        "look", "apply_patch", "agents__spawn", "agents__note", "local_shell", "tool_search",
    ]  # fmt: skip
    assert "lark grammar:\nstart: PATCH" in (request.tools[1].description or "")
    assert [sentence.split()[2] for sentence in request.left_out] == ["file_search"]
    assert request.untranslatable is None
    for choice, name in (
        ({"type": "custom", "name": "apply_patch"}, "apply_patch"),
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "local_shell"}, "local_shell"),
    ):
        chosen = read(tools=TOOLS, tool_choice=choice).tool_choice
        assert chosen is not None
        assert (chosen.mode, chosen.name) == (Choice.ONE, name)
    allowed = read(
        tools=TOOLS,
        tool_choice={"type": "allowed_tools", "mode": "required", "tools": TOOLS[:1]},
    )
    assert [tool.name for tool in allowed.tools] == ["look"]
    long = flat_name("n" * 60, "t" * 60)
    assert len(long) == 64
    assert long != flat_name("n" * 60, "t" * 61)


def test_items_become_messages() -> None:
    seal = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    request = read(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "No jokes."},
            {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
            {**seal, "encrypted_content": "helmdash-seal-1:abc"},
            {"type": "message", "role": "assistant",
             "content": [{"type": "output_text", "text": "I do."}]},
            {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
            {"type": "function_call", "call_id": "2", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "one"},
            {"type": "function_call_output", "call_id": "2",
             "output": [{"type": "input_text", "text": "two"}]},
            {"type": "compaction", "encrypted_content": written_summary("What was.")},
        ],
    )  # fmt: skip

    def of(role: Role, *parts: Any) -> Message:
        return Message(role=role, parts=parts)

    assert request.messages == (
        of(Role.SYSTEM, Text(text="Be brief.")),
        of(Role.SYSTEM, Text(text="No jokes.")),
        of(Role.USER, Text(text="Look.")),
        of(
            Role.ASSISTANT,
            Reasoning(text="Hm.", signature="abc"),
            Text(text="I do."),
            ToolCall(id="1", name="look", arguments="{}"),
            ToolCall(id="2", name="look", arguments="{}"),
        ),
        of(Role.TOOL, ToolResult(call_id="1", parts=(Text(text="one"),))),
        of(Role.TOOL, ToolResult(call_id="2", parts=(Text(text="two"),))),
        of(Role.USER, Text(text="What was.")),
    )
    assert not request.is_fragment
    assert request.untranslatable is None


def test_items_that_we_have_made_do_not_go_to_openai() -> None:
    """A client may go on with another model; OpenAI refuses what it has not sealed."""
    sealed = {"type": "reasoning", "id": "rs_1", "summary": []}
    items = [
        {"type": "compaction", "encrypted_content": written_summary("What was.")},
        {"role": "user", "content": "ü  1.50"},
        {**sealed, "encrypted_content": "helmdash-seal-1:abc"},
        {**sealed, "encrypted_content": "gAAA"},
        {"type": "compaction", "encrypted_content": "gAAA"},
    ]
    body = json.dumps({"input": items, "model": "m"}, indent=1).encode()
    endpoint = Endpoint(name="up", kind=ProviderKind.OPENAI, base_url="http://up/v1")

    sent = CLIENT.pass_request(
        body, json.loads(body), endpoint=endpoint, model="m", stream=False
    ).body

    assert sent is not None
    summary, *rest = json.loads(sent)["input"]
    assert summary["content"] == [{"type": "input_text", "text": "What was."}]
    assert rest == [items[1], items[3], items[4]]
    assert json.dumps(items[1], indent=1).encode().replace(b"\n", b"\n  ") in sent


def test_the_order_of_events_is_openais() -> None:
    events = written(
        [
            STARTED,
            ReasoningDelta(text="Hm."),
            ReasoningDelta(text="", signature="seal"),
            TextDelta(text="He"),
            TextDelta(text="llo"),
            *call_events(ToolCall(id="c", name="look", arguments="{}")),
            Finished(reason="tool_calls"),
            USED,
            Ended(),
        ]
    )

    assert [event["type"].removeprefix("response.") for event in events] == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    response = events[-1]["response"]
    openai.types.responses.Response.model_validate(response)
    assert [item["id"] for item in response["output"]] == ["rs_7_0", "msg_7_1", "fc_7_2"]
    assert response["output"][0]["encrypted_content"] == "helmdash-seal-1:seal"
    assert response["usage"]["total_tokens"] == 15
    assert (response["id"], response["model"]) == ("resp_7", "m-1")


def test_calls_side_by_side_are_told_one_after_the_other() -> None:
    events = written(
        [
            ToolCallStarted(index=0, id="a", name="look"),
            ToolCallDelta(index=0, arguments='{"n'),
            ToolCallStarted(index=1, id="b", name="look"),
            ToolCallDelta(index=1, arguments="{}"),
            ToolCallDelta(index=0, arguments='":1}'),
            Finished(reason="tool_calls"),
            Ended(),
        ]
    )

    output = events[-1]["response"]["output"]
    assert [(item["call_id"], item["arguments"]) for item in output] == [
        ("a", '{"n":1}'),
        ("b", "{}"),
    ]


@pytest.mark.parametrize(
    ("events", "end", "details"),
    [
        ([TextDelta(text="x"), Finished(reason="MAX_TOKENS"), Ended()], "incomplete",
         {"reason": "max_output_tokens"}),
        ([Finished(reason="SAFETY"), Ended()], "incomplete", {"reason": "content_filter"}),
        ([Finished(reason="refusal"), Ended()], "incomplete", {"reason": "content_filter"}),
        ([RefusalDelta(text="No."), Finished(reason="refusal"), Ended()], "completed", None),
        ([Finished(reason="MALFORMED_FUNCTION_CALL"), Ended()], "failed", None),
        ([TextDelta(text="x"), Failed(error=WireError(message="Sorry.", code="server_error"))],
         "failed", None),
        ([Failed(error=WireError(message="Sorry.", code="server_error"))], "failed", None),
        ([TextDelta(text="x"), Ended()], "completed", None),
    ],
)  # fmt: skip
def test_every_end_is_one_event(
    events: list[Event], end: str, details: dict[str, str] | None
) -> None:
    last = written(events)[-1]

    assert last["type"] == f"response.{end}"
    assert last["response"]["status"] == end
    assert last["response"]["incomplete_details"] == details
    assert (last["response"]["error"] is not None) == (end == "failed")


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (Finished(reason="length"), "incomplete"),
        (Failed(error=WireError(message="Sorry.")), "failed"),
    ],
)
def test_a_call_that_broke_off_is_never_done(end: Event, status: str) -> None:
    """Codex runs a tool as soon as its call is done, whatever comes then."""
    calls: list[Event] = [
        ToolCallStarted(index=0, id="a", name="look"),
        ToolCallDelta(index=0, arguments='{"n'),
        ToolCallStarted(index=1, id="b", name="apply_patch"),
        ToolCallDelta(index=1, arguments='{"input":"*** Beg'),
    ]

    events = written([STARTED, TextDelta(text="I look."), *calls, end, Ended()])

    assert events[-1]["type"] == f"response.{status}"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done] == ["message"]
    assert events[-1]["response"]["output"] == done


def test_a_stream_that_was_cut_off_has_no_last_event() -> None:
    assert written([STARTED, TextDelta(text="x")])[-1]["type"] == "response.output_text.delta"


def test_a_stream_reads_the_same_however_its_bytes_are_split() -> None:
    request = read()
    said = events_of(
        Reply(
            id="r",
            model="m",
            parts=(Reasoning(text="Hm."), Text(text="wörld ✓"), CALLS[0][1]),
            finish_reason="stop",
            usage=dict(USED.usage),
        )
    )
    writer = CLIENT.stream_writer(answer=answer(), request=request)
    data = b"".join(writer.write(event) for event in said)

    found = []
    for size in (1, 7, len(data)):
        reader = SPOKEN.stream_reader(request=request)
        events = [e for at in range(0, len(data), size) for e in reader.feed(data[at : at + size])]
        found.append(events + reader.flush())

    assert found[0] == found[1] == found[2]
    reply = collect(found[0])
    assert (reply.text, reply.reasoning, reply.tool_calls) == ("wörld ✓", "Hm.", (CALLS[0][1],))
    assert reply.finish_reason == "completed"


@pytest.mark.parametrize(
    ("data", "text", "code"),
    [
        # Servers that stream nothing of an item, or nothing at all.
        ((b'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message",'
         b'"content":[{"type":"output_text","text":"Hi"}]}}\n\n'
         b'data: {"type":"response.completed","response":{"status":"completed"}}\n\n'), "Hi", None),
        ((b'data: {"type":"response.completed","response":{"status":"completed","output":[{"type":'
         b'"message","content":[{"type":"output_text","text":"Hi"}]}]}}\n\n'), "Hi", None),
        ((b'{"status":"completed","output":[{"type":"message","content":[{"type":"output_text",'
         b'"text":"Hi"}]}]}'), "Hi", None),
        (b'data: {"type":"error","code":"server_error","message":"x"}\n\n', "", "server_error"),
        ((b'data: {"type":"response.failed","response":{"status":"failed","error":{"code":"long",'
         b'"message":"x"}}}\n\n'), "", "long"),
        (b"data: {{\n\n", "", "undecodable_stream"),
        (b"data: [1]\n\ndata: [DONE]\n\n", "", "undecodable_stream"),
        (b'{"error":{"message":"x","code":"c"}}', "", "c"),
        (b'data: {"type":"response.output_text.delta","delta":5,"output_index":"x"}\n\n', "", None),
        (b'data: {"type":"response.output_item.added","item":[],"output_index":0}\n\n', "", None),
    ],
)  # fmt: skip
def test_what_servers_send(data: bytes, text: str, code: str | None) -> None:
    reader = SPOKEN.stream_reader(request=read())

    reply = collect([*reader.feed(data), *reader.flush()])

    assert reply.text == text
    assert (reply.error.code if reply.error else None) == code
