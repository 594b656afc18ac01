"""Replies and streams as Anthropic sends them: what is written reads the same, here and there.

"There" is the vendor's own client, unmodified, with a transport that answers from memory.
"""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers.anthropic import (
    CLIENT,
    UPSTREAM,
)
from helmdash.providers.protocols import ListedModel, ReplyContext
from helmdash.providers.wire import (
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
    Image,
    JsonMode,
    Other,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Started,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)

ANSWER = ReplyContext(call_id="0198c0de", model="claude-sonnet-4-5", created=1_700_000_000)
REQUEST = ChatRequest(model="m", messages=())
JSON_REQUEST = ChatRequest(model="m", messages=(), json_mode=JsonMode())


def write(reply: Reply) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(CLIENT.write_reply(reply, answer=ANSWER))
    return body


def write_stream(events: list[Event]) -> bytes:
    writer = CLIENT.stream_writer(answer=ANSWER, request=REQUEST)
    return b"".join(writer.write(event) for event in events) + writer.close()


def read_stream(data: bytes, request: ChatRequest = REQUEST) -> list[Event]:
    reader = UPSTREAM.stream_reader(request=request)
    return reader.feed(data) + reader.flush()


def shape_of(data: bytes) -> list[str]:
    """The stream in short: kinds of events, with the index and kind of each block."""
    shape = []
    for block in data.decode().split("\n\n")[:-1]:
        name, _, rest = block.partition("\n")
        event = orjson.loads(rest.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        what = event.get("delta", event.get("content_block", {})).get("type", "")
        shape.append(
            " ".join(str(x) for x in (event["type"], event.get("index", ""), what)).strip()
        )
    return [line.removeprefix("content_block_") for line in shape]


def sdk(body: bytes, content_type: str, status: int = 200) -> anthropic.Anthropic:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=body, headers={"content-type": content_type})

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return anthropic.Anthropic(
        api_key="k", base_url="https://gateway.example", http_client=client, max_retries=0
    )


def ask(client: anthropic.Anthropic) -> anthropic.types.Message:
    return client.messages.create(
        model="claude-opus-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    )


def ask_for_stream(client: anthropic.Anthropic) -> anthropic.types.Message:
    with client.messages.stream(
        model="claude-opus-5", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        return stream.get_final_message()


def test_what_the_official_client_sends_is_read() -> None:
    bodies: list[dict[str, Any]] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        bodies.append(orjson.loads(request.content))
        return httpx2.Response(200, content=CLIENT.write_reply(Reply(), answer=ANSWER))

    client = anthropic.Anthropic(
        api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(keep))
    )
    schema: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}

    client.messages.create(
        model="claude-opus-5",
        max_tokens=99,
        system="Be brief.",
        messages=[
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]},
            {"role": "user", "content": [{"type": "text", "text": "Zoom"}]},
        ],
        tools=[{"name": "zoom", "input_schema": {"type": "object"}}],
        tool_choice={"type": "any"},
        thinking={"type": "adaptive"},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": schema}},
    )
    request = CLIENT.read_request(bodies[0], model=None, stream=None)

    assert [message.text for message in request.messages] == ["Be brief.", "Hi", "Yes?", "Zoom"]
    assert request.json_mode == JsonMode(schema=schema)
    assert (request.max_tokens, request.reasoning_effort, request.extra) == (99, "low", {})


# --- laws

some_text = st.text(min_size=1, max_size=12)
arguments = st.dictionaries(some_text, st.integers(-9, 9) | some_text, max_size=2).map(
    lambda value: orjson.dumps(value).decode()
)
reply_parts = st.one_of(
    st.builds(Text, text=some_text),
    st.builds(Reasoning, text=some_text, signature=st.none() | some_text),
    st.builds(ToolCall, id=some_text, name=some_text, arguments=arguments),
    st.just(Other(kind="redacted_thinking", raw={"type": "redacted_thinking", "data": "Em"})),
)
counts = st.integers(1, 9999)
usages = st.fixed_dictionaries(
    {"input_tokens": counts, "output_tokens": counts},
    optional={
        "cache_creation_input_tokens": st.integers(0, 99),
        "cache_read_input_tokens": st.integers(0, 99),
        "output_tokens_details": st.just({"thinking_tokens": 1}),
    },
)
replies = st.builds(
    Reply,
    id=st.just("msg_01"),
    model=st.just(ANSWER.model),
    parts=st.lists(reply_parts, max_size=4).map(tuple),
    finish_reason=st.sampled_from(["max_tokens", "stop_sequence", "tool_use", "pause_turn"]),
    usage=usages,
) | st.builds(
    Reply,
    id=st.just("msg_01"),
    model=st.just(ANSWER.model),
    refusal=some_text,
    finish_reason=st.just("refusal"),
    usage=usages,
)


@settings(max_examples=120, deadline=None)
@given(replies)
def test_a_reply_that_is_written_reads_the_same(reply: Reply) -> None:
    body = CLIENT.write_reply(reply, answer=ANSWER)

    assert UPSTREAM.read_reply(body, request=REQUEST) == reply
    anthropic.types.Message.model_validate(orjson.loads(body))


pieces = st.lists(some_text, min_size=1, max_size=3)
text_run = pieces.map(lambda texts: [TextDelta(text=text) for text in texts])
thought_run = st.builds(
    lambda texts, seal: [
        *(ReasoningDelta(text=text) for text in texts),
        *([ReasoningDelta(text="", signature=seal)] if seal else []),
    ],
    pieces,
    st.none() | some_text,
)
call_run = st.builds(
    lambda name, text, cut: [
        ToolCallStarted(index=0, id=f"id_{name}", name=name),
        *(ToolCallDelta(index=0, arguments=one) for one in (text[:cut], text[cut:]) if one),
    ],
    some_text,
    arguments,
    st.integers(0, 20),
)


def numbered(runs: list[list[Event]]) -> list[Event]:
    """The calls of all runs, numbered in the order they start."""
    events: list[Event] = []
    calls = -1
    for event in (event for run in runs for event in run):
        if isinstance(event, ToolCallStarted):
            calls += 1
            events.append(ToolCallStarted(index=calls, id=event.id, name=event.name))
        elif isinstance(event, ToolCallDelta):
            events.append(ToolCallDelta(index=calls, arguments=event.arguments))
        else:
            events.append(event)
    return events


@settings(max_examples=120, deadline=None)
@given(st.lists(text_run | thought_run | call_run, max_size=5), usages)
def test_a_stream_that_is_written_reads_the_same(
    runs: list[list[Event]], usage: dict[str, Any]
) -> None:
    deltas = numbered(runs)
    seen = UsageSeen(usage=usage)
    started = Started(id="msg_01", model=ANSWER.model)

    data = write_stream([started, *deltas, Finished(reason="max_tokens"), seen, Ended()])

    events = [event for event in read_stream(data) if not isinstance(event, UsageSeen)]
    assert events == [started, *deltas, Finished(reason="max_tokens"), Ended()]
    assert [event for event in read_stream(data) if isinstance(event, UsageSeen)][-1] == seen


interleaved = st.lists(
    st.sampled_from(
        [
            TextDelta(text="a"),
            ReasoningDelta(text="r"),
            ReasoningDelta(text="", signature="s"),
            ToolCallStarted(index=0, id="c0", name="f"),
            ToolCallStarted(index=1, id="c1", name="g"),
            ToolCallDelta(index=0, arguments='{"k"'),
            ToolCallDelta(index=0, arguments=":1}"),
            ToolCallDelta(index=1, arguments="{}"),
            UsageSeen(usage={"prompt_tokens": 3}),
            RefusalDelta(text="no"),
            Finished(reason="stop"),
        ]
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(interleaved)
def test_blocks_open_and_close_in_turn_whatever_comes(events: list[Event]) -> None:
    shape = shape_of(write_stream(events))

    assert shape[:2] == ["message_start", "ping"]
    assert shape[-2:] == ["message_delta", "message_stop"]
    expected, is_open = 0, False
    for line in shape[2:-2]:
        kind, index = line.split()[:2]
        assert int(index) == expected
        assert is_open is (kind != "start")
        is_open = kind != "stop"
        expected += kind == "stop"
    assert not is_open


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=5), st.booleans())
def test_garbage_gives_events_and_never_raises(chunks: list[bytes], is_framed: bool) -> None:
    data = b"".join(b"data: %b\n\n" % chunk for chunk in chunks) if is_framed else b"".join(chunks)

    assert all(event is not None for event in read_stream(data))
    assert UPSTREAM.read_reply(data, request=REQUEST).error is not None
    assert UPSTREAM.read_error(500, data).message


odd = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["text", "tool_use", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                "type index delta content_block text usage error message content".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KINDS = """message_start content_block_start content_block_delta content_block_stop message_delta
    message_stop error ping""".split()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), odd), max_size=5))
def test_odd_events_never_raise(items: list[tuple[str, Any]]) -> None:
    data = b""
    for kind, value in items:
        event = {**value, "type": kind} if isinstance(value, dict) else value
        data += b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(event))

    read_stream(data)
    for _, value in items:
        UPSTREAM.read_reply(orjson.dumps({"content": value, "usage": value}), request=JSON_REQUEST)
        UPSTREAM.read_error(400, orjson.dumps(value))


# --- replies


@pytest.mark.parametrize(
    ("raw", "parts", "stop_reason"),
    [
        ("stop", (), "end_turn"),
        ("length", (), "max_tokens"),
        ("tool_calls", (), "tool_use"),
        ("content_filter", (), "refusal"),
        ("SAFETY", (), "refusal"),
        ("MAX_TOKENS", (), "max_tokens"),
        # Ollama and Gemini say "stop" for a reply that asks for tools
        ("stop", (ToolCall(id="a", name="b", arguments=""),), "tool_use"),
        # Anthropic's own words stay
        ("stop_sequence", (), "stop_sequence"),
        ("pause_turn", (), "pause_turn"),
        ("model_context_window_exceeded", (), "model_context_window_exceeded"),
        # no words for these
        ("error", (), "end_turn"),
        ("something_new", (), "end_turn"),
        # nothing was said
        (None, (), None),
    ],
)
def test_finish_reasons_become_stop_reasons(
    raw: str | None, parts: tuple[ToolCall, ...], stop_reason: str | None
) -> None:
    assert write(Reply(finish_reason=raw, parts=parts))["stop_reason"] == stop_reason


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        # OpenAI counts cached tokens in
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            {
                "input_tokens": 40,
                "output_tokens": 7,
                "cache_read_input_tokens": 60,
                "output_tokens_details": {"thinking_tokens": 3},
            },
        ),
        # Ollama
        (
            {"prompt_eval_count": 5, "eval_count": 2},
            {"input_tokens": 5, "output_tokens": 2},
        ),
        # unknown: the format has no way to leave them out
        (None, {"input_tokens": 0, "output_tokens": 0}),
    ],
)
def test_usage_of_any_vendor_is_written(
    usage: dict[str, Any] | None, written: dict[str, Any]
) -> None:
    assert write(Reply(usage=usage))["usage"] == written


def test_a_reply_of_another_vendor_is_a_message_for_the_official_client() -> None:
    reply = Reply(
        id="chatcmpl-1",
        model="gpt",
        parts=(
            Reasoning(text="Hm"),
            Text(text="Hi"),
            Image(data="aGk="),
            ToolCall(id="call_1", name="zoom", arguments='{"by":2}'),
            ToolCall(id="call_2", name="zoom", arguments="oops"),
        ),
        finish_reason="tool_calls",
    )

    message = ask(sdk(CLIENT.write_reply(reply, answer=ANSWER), "application/json"))

    assert message.id == "msg_0198c0de"
    assert message.model == "claude-sonnet-4-5"
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"by": 2}, {"_arguments": "oops"}]
    assert message.stop_reason == "tool_use"


def test_a_refusal_keeps_its_words() -> None:
    body = write(Reply(refusal="I will not.", finish_reason="stop"))

    assert body["stop_reason"] == "refusal"
    assert body["stop_details"]["explanation"] == "I will not."
    anthropic.types.Message.model_validate(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{}", b"<html>", b'{"content": "x"}', b'{"type": "message"}', b"\xff"],
)
def test_what_is_no_reply_is_an_error(body: bytes) -> None:
    error = UPSTREAM.read_reply(body, request=REQUEST).error

    assert error is not None
    assert error.code == "undecodable_reply"


# One level too deep, more than orjson writes, about as many as json wrote up to Python 3.11.
@pytest.mark.parametrize("levels", [201, 300, 1015])
def test_arguments_nested_too_deeply_are_an_error_and_no_crash(levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    body = b'{"content":[{"type":"tool_use","id":"a","name":"b","input":%b}]}' % deep

    assert UPSTREAM.read_reply(body, request=REQUEST).error is not None


# --- JSON mode


def test_the_tool_for_json_becomes_text_again() -> None:
    call = ToolCall(id="t", name="json_reply", arguments='{"a":1}')
    body = CLIENT.write_reply(Reply(parts=(call,), finish_reason="tool_use"), answer=ANSWER)

    reply = UPSTREAM.read_reply(body, request=JSON_REQUEST)

    assert (reply.text, reply.tool_calls, reply.finish_reason) == ('{"a":1}', (), "end_turn")


def test_the_tool_for_json_becomes_text_in_a_stream() -> None:
    data = write_stream(
        [
            ToolCallStarted(index=0, id="t", name="json_reply"),
            ToolCallDelta(index=0, arguments='{"a"'),
            ToolCallDelta(index=0, arguments=":1}"),
            Finished(reason="tool_use"),
        ]
    )

    events = read_stream(data, JSON_REQUEST)

    assert [e for e in events if not isinstance(e, Started | UsageSeen)] == [
        TextDelta(text='{"a"'),
        TextDelta(text=":1}"),
        Finished(reason="end_turn"),
        Ended(),
    ]


def test_a_tool_of_the_clients_stays_a_call_in_json_mode() -> None:
    request = ChatRequest(
        model="m", messages=(), json_mode=JsonMode(), tools=(Tool(name="json_reply"),)
    )
    call = ToolCall(id="t", name="json_reply", arguments="{}")
    body = CLIENT.write_reply(Reply(parts=(call,), finish_reason="tool_use"), answer=ANSWER)

    reply = UPSTREAM.read_reply(body, request=request)

    assert (reply.tool_calls, reply.finish_reason) == ((call,), "tool_use")


def message_event(kind: str, **members: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **members}))


def block(index: int, content: dict[str, Any], **delta: str) -> bytes:
    start = message_event("content_block_start", index=index, content_block=content)
    middle = message_event("content_block_delta", index=index, delta=delta)
    return start + middle + message_event("content_block_stop", index=index)


def text_block(index: int, text: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, type="text_delta", text=text)


def call_block(index: int, name: str, arguments: str) -> bytes:
    content = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    return block(index, content, type="input_json_delta", partial_json=arguments)


def head_of(model: str) -> bytes:
    return message_event("message_start", message={"id": "msg_1", "model": model})


HEAD = head_of("claude-3-7-sonnet")
FOR_TOOLS = message_event("message_delta", delta={"stop_reason": "tool_use"}) + message_event(
    "message_stop"
)
TURN_ENDS = message_event("message_delta", delta={"stop_reason": "end_turn"}) + message_event(
    "message_stop"
)


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        # before the tool, after it, both
        ([text_block(0, "Let me see."), call_block(1, "json_reply", '{"a":1}')], '{"a":1}'),
        ([call_block(0, "json_reply", '{"a":1}'), text_block(1, "Done.")], '{"a":1}'),
        (
            [
                text_block(0, "Let "),
                text_block(1, "me."),
                call_block(2, "json_reply", '{"a":1}'),
                text_block(3, "Done."),
            ],
            '{"a":1}',
        ),
        # the tool was not used: the text is all there is
        ([text_block(0, "I cannot "), text_block(1, "say.")], "I cannot say."),
        # another tool came
        ([text_block(0, "Wait."), call_block(1, "zoom", "{}")], "Wait."),
    ],
)
def test_text_beside_the_tool_for_json_is_dropped_in_a_stream(
    blocks: list[bytes], text: str
) -> None:
    data = HEAD + b"".join(blocks) + FOR_TOOLS

    events = read_stream(data, JSON_REQUEST)

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == text
    assert isinstance(events[-2], Finished)
    assert events[-1] == Ended()
    reader = UPSTREAM.stream_reader(request=JSON_REQUEST)
    one_by_one = [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]
    assert [*one_by_one, *reader.flush()] == events


# cut off; an error of the upstream's; an event that is too long
@pytest.mark.parametrize(
    "end", [b"", message_event("error", error={"message": "Busy."}), b"data: " + b"x" * 2**24]
)
def test_text_in_json_mode_is_not_lost_when_the_stream_breaks_off(end: bytes) -> None:
    events = read_stream(HEAD + text_block(0, "Let me") + end, JSON_REQUEST)

    assert events[1] == TextDelta(text="Let me")
    assert [type(event) for event in events[2:]] == ([Failed] if end else [])


def test_text_does_not_wait_where_the_model_takes_a_schema_without_the_tool() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    request = ChatRequest(
        model="anthropic/claude-sonnet-4-5", messages=(), json_mode=JsonMode(schema=schema)
    )
    for model, count in (("claude-sonnet-4-5-20250929", 1), ("claude-3-7-sonnet", 0)):
        reader = UPSTREAM.stream_reader(request=request)
        events = reader.feed(head_of(model) + text_block(0, '{"a":'))
        assert len([e for e in events if isinstance(e, TextDelta)]) == count


def test_text_beside_the_tool_for_json_is_dropped_from_a_whole_reply() -> None:
    call = ToolCall(id="t", name="json_reply", arguments='{"a":1}')
    parts = (Reasoning(text="Hm"), Text(text="Let me see."), call, Text(text="Done."))
    body = CLIENT.write_reply(Reply(parts=parts, finish_reason="tool_use"), answer=ANSWER)

    reply = UPSTREAM.read_reply(body, request=JSON_REQUEST)

    assert (reply.text, reply.finish_reason) == ('{"a":1}', "end_turn")
    assert isinstance(reply.parts[0], Reasoning)
    plain = CLIENT.write_reply(Reply(parts=parts[:2]), answer=ANSWER)
    assert UPSTREAM.read_reply(plain, request=JSON_REQUEST).text == "Let me see."


# --- streams


def test_the_official_client_puts_a_stream_together() -> None:
    data = write_stream(
        [
            Started(id="chatcmpl-1", model="gpt"),
            ReasoningDelta(text="Hm"),
            TextDelta(text="Hel"),
            TextDelta(text="lo"),
            ToolCallStarted(index=0, id="call_1", name="zoom"),
            ToolCallStarted(index=1, id="call_2", name="now"),
            ToolCallDelta(index=0, arguments='{"by"'),
            ToolCallDelta(index=1, arguments="{}"),
            ToolCallDelta(index=0, arguments=":2}"),
            Finished(reason="stop"),
            UsageSeen(
                usage={
                    "prompt_tokens": 30,
                    "completion_tokens": 4,
                    "prompt_tokens_details": {"cached_tokens": 10},
                }
            ),
            Ended(),
        ]
    )

    message = ask_for_stream(sdk(data, CLIENT.stream_type))

    kept = {"type", "text", "thinking", "name", "input"}
    assert [block.model_dump(include=kept) for block in message.content] == [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "name": "zoom", "input": {"by": 2}},
        {"type": "tool_use", "name": "now", "input": {}},
    ]
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens == 20
    assert message.usage.cache_read_input_tokens == 10
    assert message.usage.output_tokens == 4


def test_calls_that_follow_each_other_are_written_as_they_come() -> None:
    writer = CLIENT.stream_writer(answer=ANSWER, request=REQUEST)
    writer.write(ToolCallStarted(index=0, id="a", name="f"))
    writer.write(ToolCallDelta(index=0, arguments='{"a":1}'))

    second = writer.write(ToolCallStarted(index=1, id="b", name="g"))

    assert shape_of(second) == ["stop 0", "start 1 tool_use"]


def test_an_error_inside_a_stream_reaches_the_official_client() -> None:
    error = WireError(message="Too busy.", code="server_overloaded", status=529)
    data = write_stream(
        [Started(), TextDelta(text="Hel"), Failed(error=error), TextDelta(text="x")]
    )

    with pytest.raises(anthropic.APIStatusError, match=r"Too busy\."):
        ask_for_stream(sdk(data, CLIENT.stream_type))
    assert shape_of(data)[-1] == "error"


def test_a_stream_without_an_end_gets_one_and_no_reason() -> None:
    data = write_stream([TextDelta(text="Hel")])

    assert shape_of(data)[-3:] == ["stop 0", "message_delta", "message_stop"]
    assert not [event for event in read_stream(data) if isinstance(event, Finished)]


def test_a_stream_that_breaks_off_reports_no_output_tokens() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}

    events = read_stream(b"data: %b\n\n" % orjson.dumps(start))

    assert events == [Started(), UsageSeen(usage={"input_tokens": 9})]


def test_an_event_that_cannot_be_read_fails_the_stream_once() -> None:
    events = read_stream(b"data: {oops\n\ndata: {oops\n\n")

    assert [type(event) for event in events] == [Failed]
    assert isinstance(events[0], Failed)
    assert events[0].error.code == "undecodable_stream"


def test_reading_goes_on_after_an_event_that_cannot_be_read() -> None:
    bad = b"event: content_block_delta\ndata: {oops\n\ndata: 7\n\n"
    usage = {"output_tokens": 5}
    end = message_event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage)
    data = HEAD + text_block(0, "a") + bad + text_block(1, "b") + bad + end
    data += message_event("message_stop")

    events = read_stream(data)

    assert [type(event) for event in events] == [
        Started,
        TextDelta,
        Failed,
        TextDelta,
        UsageSeen,
        Finished,
        Ended,
    ]
    reader = UPSTREAM.stream_reader(request=REQUEST)
    one_by_one = [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]
    assert [*one_by_one, *reader.flush()] == events


def test_a_whole_reply_without_a_reason_is_not_said_to_have_ended() -> None:
    events = read_stream(b'{"content":[{"type":"text","text":"Hi"}],"stop_reason":null}')

    assert events == [TextDelta(text="Hi")]


def test_a_page_of_html_is_told_as_its_visible_text() -> None:
    page = b"<html><head><style>p{}</style></head><body><h1>502</h1> Bad &amp; sad</body></html>"

    assert UPSTREAM.read_error(502, page) == WireError(message="502 Bad & sad", status=502)


def test_a_whole_reply_instead_of_a_stream_gives_its_events() -> None:
    reply = Reply(
        parts=(Text(text="Hi"), ToolCall(id="a", name="b", arguments="{}")),
        finish_reason="tool_use",
        usage={"prompt_tokens": 3, "completion_tokens": 2},
    )

    events = read_stream(b"\n " + CLIENT.write_reply(reply, answer=ANSWER))

    assert events[1:] == [
        TextDelta(text="Hi"),
        ToolCallStarted(index=0, id="a", name="b"),
        ToolCallDelta(index=0, arguments="{}"),
        Finished(reason="tool_use"),
        UsageSeen(usage={"input_tokens": 3, "output_tokens": 2}),
        Ended(),
    ]


# --- errors and lists


@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", "BadRequestError"),
        (401, "authentication_error", "AuthenticationError"),
        (403, "permission_error", "PermissionDeniedError"),
        (404, "not_found_error", "NotFoundError"),
        (413, "request_too_large", "APIStatusError"),
        (422, "invalid_request_error", "UnprocessableEntityError"),
        (429, "rate_limit_error", "RateLimitError"),
        (500, "api_error", "InternalServerError"),
        (503, "api_error", "APIStatusError"),
        (529, "overloaded_error", "APIStatusError"),
    ],
)
def test_errors_are_worded_by_status(status: int, kind: str, raised: str) -> None:
    body = CLIENT.write_error(WireError(message="No.", code="whatever", status=status))

    assert orjson.loads(body) == {
        "type": "error",
        "error": {"type": kind, "message": "No."},
        "request_id": None,
    }
    with pytest.raises(getattr(anthropic, raised)):
        ask(sdk(body, "application/json", status))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "context_length_exceeded", "invalid_request_error"),
        (401, "invalid_api_key", "authentication_error"),
        (404, "model_not_found", "not_found_error"),
        (422, None, "invalid_request_error"),
    ],
)
def test_openais_word_for_any_refusal_is_told_apart_by_status(
    status: int, code: str | None, kind: str
) -> None:
    error = WireError(message="No.", code=code, type="invalid_request_error", status=status)

    assert orjson.loads(CLIENT.write_error(error))["error"]["type"] == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (WireError(message="x", type="overloaded_error", status=503), "overloaded_error"),
        (WireError(message="x", code="rate_limit_exceeded"), "rate_limit_error"),
        (WireError(message="x", code="context_length_exceeded"), "invalid_request_error"),
        (WireError(message="Something broke."), "api_error"),
    ],
)
def test_errors_without_a_status_are_worded_by_their_words(error: WireError, kind: str) -> None:
    assert orjson.loads(CLIENT.write_error(error))["error"]["type"] == kind


def test_models_are_listed_as_the_official_client_reads_them() -> None:
    body = CLIENT.write_models(
        [ListedModel(name="a/x", owner="up"), ListedModel(name="b/y", owner="up")],
        created=1_700_000_000,
    )

    page = sdk(body, "application/json").models.list()

    assert [model.id for model in page] == ["a/x", "b/y"]
    assert UPSTREAM.read_models(body) == ("a/x", "b/y")
    one = orjson.loads(
        CLIENT.write_model(ListedModel(name="a/x", owner="up"), created=1_700_000_000)
    )
    anthropic.types.ModelInfo.model_validate(one)
    assert one["created_at"] == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data": 3}'])
def test_what_is_no_list_of_models_raises(body: bytes) -> None:
    with pytest.raises(ValueError):
        UPSTREAM.read_models(body)
