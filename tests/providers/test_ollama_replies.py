"""Ollama: replies, errors, lists and streams as its clients get them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx
import ollama as sdk
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.usage import normalise_usage
from helmdash.providers.ollama import CLIENT, GENERATE_CLIENT, UPSTREAM
from helmdash.providers.ollama.listing import write_ps, write_show, write_version
from helmdash.providers.protocols import ClientFormat, ListedModel, ReplyContext
from helmdash.providers.wire import (
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
    Image,
    Part,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)

REQUEST = ChatRequest(model="m", messages=())
ANSWER = ReplyContext(call_id="call-1", model="llama3.2", created=1_700_000_000)
BOTH = pytest.mark.parametrize("client_format", [CLIENT, GENERATE_CLIENT], ids=["chat", "generate"])

TEXTS = st.text(min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans()), max_size=3)
CALLS = st.builds(
    ToolCall,
    id=TEXTS,
    name=TEXTS,
    arguments=ARGUMENTS.map(lambda value: orjson.dumps(value).decode()),
)
# One message holds one text and one train of thought, in this order.
PARTS = st.tuples(
    st.lists(st.builds(Reasoning, text=TEXTS), max_size=1),
    st.lists(st.builds(Text, text=TEXTS), max_size=1),
    st.lists(CALLS, max_size=3),
).map(lambda lists: tuple(part for some in lists for part in some))
USAGES = st.fixed_dictionaries(
    {"prompt_eval_count": st.integers(1, 99)},
    optional={"eval_count": st.integers(1, 99), "total_duration": st.integers(1, 10**12)},
)


@settings(max_examples=70, deadline=None)
@given(
    client_format=st.sampled_from([CLIENT, GENERATE_CLIENT]),
    reply=st.builds(
        Reply,
        model=st.just(ANSWER.model),
        parts=PARTS,
        finish_reason=st.sampled_from(["stop", "length", "load", "unload", None]),
        usage=st.none() | USAGES,
    ),
)
def test_a_reply_that_was_written_reads_as_the_same_reply(
    client_format: ClientFormat, reply: Reply
) -> None:
    body = client_format.write_reply(reply, answer=ANSWER)

    assert UPSTREAM.read_reply(body, request=REQUEST) == reply


FOREIGN = Reply(
    id="chatcmpl-1",
    model="gpt-5",
    parts=(
        Reasoning(text="Hm."),
        Text(text="Low."),
        ToolCall(id="call_a", name="f", arguments='{"a":1}'),
    ),
    finish_reason="tool_calls",
    usage={"prompt_tokens": 10, "completion_tokens": 7},
)


def test_another_providers_reply_is_the_chat_that_the_sdk_expects() -> None:
    found = sdk.ChatResponse.model_validate_json(CLIENT.write_reply(FOREIGN, answer=ANSWER))

    assert (found.model, found.created_at) == ("llama3.2", "2023-11-14T22:13:20Z")
    assert (found.message.role, found.message.content) == ("assistant", "Low.")
    assert found.message.thinking == "Hm."
    assert found.message.tool_calls is not None
    assert found.message.tool_calls[0].function.name == "f"
    assert found.message.tool_calls[0].function.arguments == {"a": 1}
    assert (found.done, found.done_reason) == (True, "stop")
    assert (found.prompt_eval_count, found.eval_count) == (10, 7)
    assert found.total_duration is None


def test_another_providers_reply_is_the_completion_that_the_sdk_expects() -> None:
    found = sdk.GenerateResponse.model_validate_json(
        GENERATE_CLIENT.write_reply(FOREIGN, answer=ANSWER)
    )

    assert (found.response, found.thinking, found.done_reason) == ("Low.", "Hm.", "stop")
    assert (found.prompt_eval_count, found.eval_count) == (10, 7)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
def test_unknown_usage_is_left_out(usage: dict[str, Any] | None) -> None:
    body = json.loads(CLIENT.write_reply(Reply(usage=usage), answer=ANSWER))

    assert not [name for name in body if "count" in name or "duration" in name]


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("STOP", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        # "stop" would hide these
        ("SAFETY", "content_filter"),
        ("refusal", "refusal"),
        ("load", "load"),
        (None, None),
    ],
)
def test_a_finish_reason_is_a_done_reason(reason: str | None, word: str | None) -> None:
    body = json.loads(CLIENT.write_reply(Reply(finish_reason=reason), answer=ANSWER))

    assert body.get("done_reason") == word


def test_a_refusal_is_content_and_an_image_does_not_break_the_sdk() -> None:
    reply = Reply(parts=(Image(media_type="image/png", data="aGk="),), refusal="I will not.")

    found = sdk.ChatResponse.model_validate_json(CLIENT.write_reply(reply, answer=ANSWER))

    assert found.message == sdk.Message(role="assistant", content="I will not.")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b'{"error":"model \'x\' not found"}', "model 'x' not found"),
        (500, b'{"error":{"message":"inner","type":"api_error"}}', "inner"),
        (500, b'{"error":""}', '{"error":""}'),
        (502, b"", "Ollama answered 502."),
        # a proxy's page
        (502, b"<html><body><h1>Bad</h1>\n<p>gateway</p></body></html>", "Bad gateway"),
    ],
)
def test_an_error_says_what_the_body_says(status: int, body: bytes, message: str) -> None:
    assert UPSTREAM.read_error(status, body) == WireError(message=message, status=status)


def test_an_error_reads_back_as_it_was_written() -> None:
    error = WireError(message="Too many", status=429)

    assert UPSTREAM.read_error(429, CLIENT.write_error(error)) == error
    assert CLIENT.write_reply(Reply(error=error), answer=ANSWER) == CLIENT.write_error(error)


# --- streams


def stream(client_format: ClientFormat, events: Iterable[Event]) -> bytes:
    writer = client_format.stream_writer(answer=ANSWER, request=REQUEST)
    return b"".join([*(writer.write(event) for event in events), writer.close(), writer.close()])


def read(data: bytes) -> list[Event]:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    return [*reader.feed(data), *reader.flush()]


def events_of(parts: Iterable[Part]) -> list[Event]:
    found: list[Event] = []
    calls = 0
    for part in parts:
        if isinstance(part, Text):
            found.append(TextDelta(text=part.text))
        elif isinstance(part, Reasoning):
            found.append(ReasoningDelta(text=part.text))
        elif isinstance(part, ToolCall):
            found.append(ToolCallStarted(index=calls, id=part.id, name=part.name))
            found.append(ToolCallDelta(index=calls, arguments=part.arguments))
            calls += 1
    return found


@settings(max_examples=70, deadline=None)
@given(parts=PARTS, usage=USAGES, client_format=st.sampled_from([CLIENT, GENERATE_CLIENT]))
def test_a_stream_that_was_written_reads_as_the_same_events(
    parts: tuple[Part, ...], usage: dict[str, Any], client_format: ClientFormat
) -> None:
    events: list[Event] = [
        Started(model=ANSWER.model),
        *events_of(parts),
        Finished(reason="stop"),
        UsageSeen(usage=usage),
        Ended(),
    ]

    assert read(stream(client_format, events)) == events


@BOTH
def test_an_error_ends_the_stream(client_format: ClientFormat) -> None:
    failed = Failed(error=WireError(message="Overloaded"))

    found = read(stream(client_format, [TextDelta(text="a"), failed, TextDelta(text="b"), Ended()]))

    assert found == [Started(model=ANSWER.model), TextDelta(text="a"), failed]


def test_a_line_without_end_is_given_up_once() -> None:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    found = [event for _ in range(3) for event in reader.feed(b"x" * 8 * 1024 * 1024)]

    assert [type(event) for event in [*found, *reader.flush()]] == [Failed]


def test_reading_goes_on_after_a_line_that_cannot_be_read() -> None:
    said: list[Event] = [TextDelta(text="a"), TextDelta(text="b"), Finished(reason="stop")]
    lines = stream(CLIENT, [*said, UsageSeen(usage={"eval_count": 2}), Ended()]).splitlines(True)
    data = lines[0] + b'{"oops\n7\n' + lines[1] + b"<p>\n" + b"".join(lines[2:])

    events = read(data)

    assert [type(event) for event in events] == [
        Started,
        TextDelta,
        Failed,
        TextDelta,
        Finished,
        UsageSeen,
        Ended,
    ]
    assert isinstance(events[2], Failed)
    assert events[2].error.code == "undecodable_stream"
    reader = UPSTREAM.stream_reader(request=REQUEST)
    one_by_one = [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]
    assert [*one_by_one, *reader.flush()] == events


EVENTS: list[Event] = [
    Started(id="chatcmpl-1", model="gpt-5"),
    ReasoningDelta(text="Hm."),
    TextDelta(text="Low "),
    RefusalDelta(text="water"),
    ToolCallStarted(index=0, id="c", name="f"),
    ToolCallDelta(index=0, arguments='{"a":'),
    ToolCallDelta(index=0, arguments="1}"),
    Finished(reason="tool_calls"),
    UsageSeen(usage={"prompt_tokens": 3, "completion_tokens": 2}),
]


# --- the official SDK


def client(answer: bytes, *, status: int = 200) -> sdk.Client:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=answer))
    return sdk.Client(host="http://gateway.example", transport=transport)


def test_the_sdk_reads_our_chat_stream() -> None:
    lines = list(client(stream(CLIENT, EVENTS)).chat(model="m", messages=[], stream=True))

    assert "".join(line.message.content or "" for line in lines) == "Low water"
    assert lines[0].message.thinking == "Hm."
    calls = [call for line in lines for call in line.message.tool_calls or ()]
    assert [(call.function.name, call.function.arguments) for call in calls] == [("f", {"a": 1})]
    assert [line.done for line in lines] == [False, False, False, False, True]
    assert (lines[-1].done_reason, lines[-1].prompt_eval_count) == ("stop", 3)


def test_the_sdk_reads_our_completion_stream() -> None:
    lines = list(
        client(stream(GENERATE_CLIENT, EVENTS)).generate(model="m", prompt="x", stream=True)
    )

    assert "".join(line.response or "" for line in lines) == "Low water"
    assert lines[0].thinking == "Hm."
    assert (lines[-1].done, lines[-1].eval_count) == (True, 2)


def test_the_sdk_raises_our_errors_as_its_own() -> None:
    error = WireError(message="No such model", status=404)
    with pytest.raises(sdk.ResponseError, match="No such model") as caught:
        client(CLIENT.write_error(error), status=404).chat(model="m", messages=[])
    assert caught.value.status_code == 404

    midway = stream(CLIENT, [TextDelta(text="a"), Failed(error=error)])
    with pytest.raises(sdk.ResponseError, match="No such model"):
        list(client(midway).chat(model="m", messages=[], stream=True))


def test_the_sdk_reads_what_we_say_about_models() -> None:
    listed = client(
        CLIENT.write_models(
            [ListedModel(name="a", owner="up"), ListedModel(name="b/c:latest", owner="up")],
            created=1_700_000_000,
        )
    ).list()
    assert [model.model for model in listed.models] == ["a", "b/c:latest"]
    assert all(model.digest and len(model.digest) == 64 for model in listed.models)
    assert all(model.size is None for model in listed.models)

    shown = client(
        write_show(context_length=8192, capabilities=("completion", "tools"), at=0)
    ).show("a")
    assert shown.modelinfo is not None
    assert shown.modelinfo["helmdash.context_length"] == 8192
    assert shown.capabilities == ["completion", "tools"]

    unknown = client(write_show()).show("a")
    assert unknown.modelinfo == {"general.architecture": "helmdash"}
    assert client(write_ps()).ps().models == []
    assert json.loads(write_version("0.1.0")) == {"version": "0.1.0"}
    assert UPSTREAM.read_models(
        CLIENT.write_models([ListedModel(name="a", owner="up")], created=0)
    ) == ("a",)
    assert (
        json.loads(CLIENT.write_model(ListedModel(name="a", owner="up"), created=0))["model"] == "a"
    )


def test_usage_keeps_its_meaning_in_ollamas_names() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 5, "output_tokens": 2}

    body = json.loads(CLIENT.write_reply(Reply(usage=usage), answer=ANSWER))

    found = normalise_usage(body)
    assert (found.prompt_tokens, found.completion_tokens) == (8, 2)
