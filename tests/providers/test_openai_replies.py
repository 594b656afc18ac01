"""Replies, streams, errors and vectors in the OpenAI format, as its own client reads them."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import openai
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai import CLIENT, UPSTREAM
from helmdash.providers.openai.embeddings import (
    pass_embedding_request,
    read_embedding_request,
    write_embeddings,
)
from helmdash.providers.openai.reply import write_finish_reason, write_usage
from helmdash.providers.openai.stream_filter import OpenAIStreamFilter
from helmdash.providers.protocols import ListedModel, ReplyContext
from helmdash.providers.shared.collecting import collect, events_of
from helmdash.providers.wire import (
    ChatRequest,
    EmbeddingReply,
    EmbeddingRequest,
    Ended,
    Event,
    Failed,
    Finished,
    Part,
    Reasoning,
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

ANSWER = ReplyContext(call_id="01J", model="asked", created=1700000000)
PLAIN = ChatRequest(model="asked", messages=(), stream=True, wants_usage=False)
ASKING = ChatRequest(model="asked", messages=(), stream=True, wants_usage=True)
ENDPOINT = Endpoint(name="up", kind=ProviderKind.OPENAI, base_url="https://llm.example/v1")
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}

TEXTS = st.text(min_size=1, max_size=12)


def make_reply(
    thought: str | None, seal: str | None, text: str | None, calls: list[ToolCall], **over: Any
) -> Reply:
    parts: list[Part] = []
    if thought is not None:
        parts.append(Reasoning(text=thought, signature=seal))
    if text is not None:
        parts.append(Text(text=text))
    finish = "tool_calls" if calls else "stop"
    return Reply(parts=(*parts, *calls), finish_reason=finish, **over)


REPLIES = st.builds(
    make_reply,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.lists(
        st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=TEXTS),
        max_size=2,
        unique_by=lambda c: c.id,
    ),
    id=TEXTS,
    model=TEXTS,
    refusal=st.none() | TEXTS,
    usage=st.sampled_from([None, USAGE]),
)


def stream(events: list[Event], *, request: ChatRequest = PLAIN) -> bytes:
    writer = CLIENT.stream_writer(answer=ANSWER, request=request)
    return b"".join([*(writer.write(event) for event in events), writer.close()])


def chunks_of(data: bytes) -> list[Any]:
    blocks = data.decode().removesuffix("\n\n").split("\n\n")
    return [json.loads(block.removeprefix("data: ")) for block in blocks if "[DONE]" not in block]


# --- whole replies


@settings(max_examples=100, deadline=None)
@given(reply=REPLIES)
def test_a_written_reply_reads_the_same_and_openais_client_takes_it(reply: Reply) -> None:
    body = CLIENT.write_reply(reply, answer=ANSWER)

    assert UPSTREAM.read_reply(body, request=PLAIN) == reply
    assert openai.types.chat.ChatCompletion.model_validate_json(body, strict=True).choices[
        0
    ].message.content == (reply.text or None)


@settings(max_examples=100, deadline=None)
@given(reply=REPLIES)
def test_a_written_stream_collects_to_the_same_reply(reply: Reply) -> None:
    data = stream(events_of(reply), request=ASKING)

    reader = UPSTREAM.stream_reader(request=ASKING)
    assert collect([*reader.feed(data), *reader.flush()]) == reply
    for chunk in chunks_of(data):
        openai.types.chat.ChatCompletionChunk.model_validate(chunk, strict=True)


def test_a_reply_without_an_id_gets_the_calls() -> None:
    body = json.loads(CLIENT.write_reply(Reply(parts=(Text(text="x"),)), answer=ANSWER))

    assert (body["id"], body["model"], body["created"]) == ("chatcmpl-01J", "asked", 1700000000)
    assert "usage" not in body


def test_an_error_inside_a_200_is_written_as_an_error() -> None:
    body = CLIENT.write_reply(Reply(error=WireError(message="No.", status=500)), answer=ANSWER)

    assert json.loads(body)["error"]["message"] == "No."


@pytest.mark.parametrize(
    ("raw", "has_calls", "written"),
    [
        ("stop", False, "stop"),
        ("end_turn", False, "stop"),
        ("STOP", True, "tool_calls"),  # Gemini and Ollama
        ("stop", True, "tool_calls"),
        ("MAX_TOKENS", False, "length"),
        ("SAFETY", False, "content_filter"),
        ("tool_use", True, "tool_calls"),
        ("refusal", False, "content_filter"),
        ("function_call", True, "function_call"),
        (None, False, None),
    ],
)
def test_finish_reasons_are_said_in_openais_words(
    raw: str | None, has_calls: bool, written: str | None
) -> None:
    assert write_finish_reason(raw, has_tool_calls=has_calls) == written


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        (USAGE, USAGE),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 10, "output_tokens": 2},
            {
                "prompt_tokens": 15,
                "completion_tokens": 2,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 10},
            },
        ),
        (
            {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3},
            {
                "prompt_tokens": 5,
                "completion_tokens": 5,
                "total_tokens": 10,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
        ),
        # llama.cpp's timings have no total
        (
            {"prompt_tokens": 5, "completion_tokens": 2},
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        ),
        # not counted: nothing is said, not zero
        ({"eval_count": 5}, None),
        ({"promptTokenCount": 5}, None),
        (None, None),
    ],
)
def test_usage_is_said_in_openais_names(raw: Any, written: Any) -> None:
    assert write_usage(raw) == written


# --- streams


def test_a_client_that_did_not_ask_sees_no_usage() -> None:
    events: list[Event] = [
        Started(id="r", model="m"),
        TextDelta(text="hi"),
        Finished(reason="stop"),
        UsageSeen(usage=USAGE),
        Ended(),
    ]

    assert b"usage" not in stream(events)
    *others, last = chunks_of(stream(events, request=ASKING))
    assert all(chunk["usage"] is None for chunk in others)
    assert (last["choices"], last["usage"]) == ([], USAGE)


def test_a_stream_begins_with_the_role_and_ends_with_the_mark_once() -> None:
    data = stream([TextDelta(text="hi"), Finished(reason="MAX_TOKENS"), Ended(), Ended()])

    first, second, last = chunks_of(data)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert second["choices"][0]["delta"] == {"content": "hi"}
    assert last["choices"][0]["finish_reason"] == "length"
    assert data.endswith(b"data: [DONE]\n\n")
    assert data.count(b"[DONE]") == 1


def test_tool_calls_end_as_tool_calls_whoever_made_them() -> None:
    data = stream(
        [
            ToolCallStarted(index=0, id="c", name="f"),
            ToolCallDelta(index=0, arguments="{}"),
            Finished(reason="STOP"),
        ]
    )

    _, started, more, last = chunks_of(data)
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert started["choices"][0]["delta"] == {"tool_calls": [call]}
    assert more["choices"][0]["delta"]["tool_calls"][0]["function"] == {"arguments": "{}"}
    assert last["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_that_was_cut_off_does_not_look_whole() -> None:
    cut_off = stream([Started(id="r", model="m"), TextDelta(text="ha")])
    without_mark = stream([TextDelta(text="half"), Finished(reason="stop")])
    without_reason = stream([TextDelta(text="half"), Ended()])

    assert b"[DONE]" not in cut_off
    assert chunks_of(cut_off)[-1]["choices"][0]["finish_reason"] is None
    for whole in (without_mark, without_reason):
        assert chunks_of(whole)[-1]["choices"][0]["finish_reason"] == "stop"
        assert whole.endswith(b"data: [DONE]\n\n")


def test_nothing_follows_an_error() -> None:
    data = stream(
        [TextDelta(text="hi"), Failed(error=WireError(message="Gone.")), TextDelta(text="x")]
    )

    assert chunks_of(data)[-1]["error"]["message"] == "Gone."
    assert b"[DONE]" not in data


def test_a_server_that_answers_a_stream_with_one_body_is_understood() -> None:
    reply = Reply(id="r", model="m", parts=(Text(text="x"),), finish_reason="stop")
    body = CLIENT.write_reply(reply, answer=ANSWER)
    reader = UPSTREAM.stream_reader(request=PLAIN)

    events = [*reader.feed(body[:9]), *reader.feed(body[9:]), *reader.flush()]

    finished = Finished(reason="stop")
    assert events == [Started(id="r", model="m"), TextDelta(text="x"), finished, Ended()]


def test_an_event_that_is_too_long_is_said_and_its_bytes_go_on() -> None:
    data = b'data: {"a": "' + b"x" * (17 * 1024 * 1024)
    passing = OpenAIStreamFilter(hide_usage=True)

    shown, events = passing.feed(data)
    rest, more = passing.feed(b"rest")

    assert shown + rest == data + b"rest"
    assert [type(event) for event in events + more] == [Failed]
    assert passing.flush() == (b"", [])


def test_a_chunk_that_is_all_usage_is_dropped_with_nothing_else() -> None:
    first = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}], "usage" : null , "x":1}\n\n'
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n'
    quoted = b'data: {"choices":[{"index":0,"delta":{"content":"\\"usage\\":null"}}]}\r\n\r\n'
    passing = OpenAIStreamFilter(hide_usage=True)

    shown, _ = passing.feed(b": hi\n\n" + first + usage + quoted + b"data: [DONE]\n\n")

    kept = first.replace(b', "usage" : null ,', b" ,")
    assert shown == b": hi\n\n" + kept + quoted + b"data: [DONE]\n\n"


@pytest.mark.parametrize("choices", ['"choices":[],', '"choices":null,', ""])
def test_a_chunk_that_is_all_usage_is_dropped_however_it_has_no_choices(choices: str) -> None:
    """A list that nobody filled is null in Go; an SDK's loop over it would fail."""
    usage = f'data: {{"id":"r",{choices}"usage":{{"prompt_tokens":1}}}}\n\n'.encode()
    passing = OpenAIStreamFilter(hide_usage=True)

    shown, events = passing.feed(usage + b"data: [DONE]\n\n")

    assert shown == b"data: [DONE]\n\n"
    assert UsageSeen in [type(event) for event in events]


def test_an_error_beside_the_usage_is_not_dropped_with_it() -> None:
    error = b'data: {"choices":[],"usage":{"prompt_tokens":1},"error":{"message":"full"}}\n\n'
    passing = OpenAIStreamFilter(hide_usage=True)

    shown, events = passing.feed(error)

    assert shown == b'data: {"choices":[],"error":{"message":"full"}}\n\n'
    assert Failed in [type(event) for event in events]


# --- whatever comes, nothing raises

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                """id model choices index delta message content tool_calls function name arguments
            type text thinking reasoning reasoning_details signature refusal finish_reason usage
            x_groq timings cache_n prompt_n error code detail loc msg metadata raw object data
            embedding function_call image_url url status""".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(value=JSON, junk=st.binary(max_size=12))
def test_malformed_bytes_never_raise(value: Any, junk: bytes) -> None:
    chunk = {"id": "r", "choices": [{"delta": value, "message": value}], "usage": value}
    for body in (orjson.dumps(value), orjson.dumps(chunk), junk, b'{"error":' + junk):
        UPSTREAM.read_reply(body, request=PLAIN)
        UPSTREAM.read_embeddings(body)
        UPSTREAM.read_error(500, body)
        data = b"data: " + body + b"\n\n" + junk
        for hide_usage in (True, False):
            passing = OpenAIStreamFilter(hide_usage=hide_usage)
            passing.feed(data)
            passing.flush()


@pytest.mark.parametrize("depth", [200, 1000, 100_000])
def test_deep_nesting_never_raises(depth: int) -> None:
    body = b'{"error":' * depth + b"1" + b"}" * depth
    list_body = b'{"message":' + b"[" * depth + b"]" * depth + b"}"

    for one in (body, list_body):
        assert UPSTREAM.read_error(400, one).message
        UPSTREAM.read_reply(one, request=PLAIN)
        OpenAIStreamFilter(hide_usage=True).feed(b"data: " + one + b"\n\n")


@pytest.mark.parametrize("piece", [b"<", b"<title", b"<head ", b"<script>", b"&"])
def test_a_hostile_page_is_read_in_little_time(piece: bytes) -> None:
    assert len(UPSTREAM.read_error(502, piece * 200_000).message) <= 4000


# --- errors, vectors, lists


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (WireError(message="x", status=429), "rate_limit_error", None),
        (
            WireError(message="x", status=400, code="context_length_exceeded"),
            "invalid_request_error",
            "context_length_exceeded",
        ),
        (WireError(message="x", status=503), "server_error", None),
        (WireError(message="x"), "server_error", None),
        (WireError(message="x", status=400, type="its_own"), "its_own", None),
    ],
)
def test_errors_have_openais_envelope(error: WireError, kind: str, code: str | None) -> None:
    body = json.loads(CLIENT.write_error(error))

    assert body == {"error": {"message": "x", "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_are_written_and_read_in_both_encodings(encoding: str) -> None:
    reply = EmbeddingReply(
        model="e", vectors=((0.5, -1.0), (2.0, 0.25)), usage={"prompt_tokens": 4, "total_tokens": 4}
    )

    body = write_embeddings(reply, model="asked", encoding=encoding)

    assert UPSTREAM.read_embeddings(body) == reply
    if encoding == "float":
        openai.types.CreateEmbeddingResponse.model_validate_json(body, strict=True)


def test_vectors_come_in_the_order_of_their_numbers() -> None:
    packed = base64.b64encode(struct.pack("<2f", 1.0, 2.0)).decode()
    data = [{"index": 1, "embedding": [3]}, {"index": 0, "embedding": packed}]

    reply = UPSTREAM.read_embeddings(orjson.dumps({"data": data}))

    assert reply.vectors == ((1.0, 2.0), (3.0,))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>", "undecodable_reply"),
        (b'{"data":[{"embedding":"***"}]}', "undecodable_reply"),
        (b'{"data":[{"embedding":["a"]}]}', "undecodable_reply"),
        (b'{"data":5}', "undecodable_reply"),
        (b'{"error":{"message":"no","code":"bad"}}', "bad"),
    ],
)
def test_unreadable_vectors_are_an_error(body: bytes, code: str) -> None:
    error = UPSTREAM.read_embeddings(body).error

    assert error is not None
    assert error.code == code


def test_a_request_for_vectors_goes_both_ways() -> None:
    request = read_embedding_request(
        {"model": "e", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 8}
    )

    sent = UPSTREAM.embeddings_request(request, endpoint=ENDPOINT, model="text-e")

    expected = EmbeddingRequest(model="e", inputs=("a", "b"), dimensions=8, encoding="base64")
    assert request == expected
    assert sent.path == "/embeddings"
    assert json.loads(sent.body or b"") == {
        "model": "text-e",
        "input": ["a", "b"],
        "encoding_format": "base64",
        "dimensions": 8,
    }


def test_vectors_of_another_vendor_say_their_prompt() -> None:
    reply = EmbeddingReply(model=None, vectors=(), usage={"prompt_eval_count": 4})

    body = json.loads(write_embeddings(reply, model="asked", encoding="float"))

    assert body["model"] == "asked"
    assert body["usage"] == {"prompt_tokens": 4, "total_tokens": 4}


def test_a_clients_own_request_for_vectors_is_passed_on() -> None:
    body = b'{"input" : [[1, 2]], "model":"up/e"}'

    sent = pass_embedding_request(body, json.loads(body), endpoint=ENDPOINT, model="e")

    assert sent.body == b'{"input" : [[1, 2]], "model":"e"}'


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"input": "a"}, "model"),
        ({"model": "e"}, "input"),
        ({"model": "e", "input": [[1]]}, "input"),
        ({"model": "e", "input": "a", "dimensions": "8"}, "dimensions"),
        ({"model": "e", "input": "a", "encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_a_request_for_vectors_that_cannot_be_read_is_named(body: Any, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_embedding_request(body)

    assert caught.value.field == field


def test_lists_of_models_are_written_and_read() -> None:
    body = CLIENT.write_models(
        [ListedModel(name="a", owner="up"), ListedModel(name="b", owner="rack")], created=5
    )

    assert UPSTREAM.read_models(body) == ("a", "b")
    assert UPSTREAM.read_models(b'[{"id": "together"}]') == ("together",)
    openai.types.Model.model_validate(json.loads(body)["data"][0], strict=True)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data": {}}', b"5"])
def test_what_is_no_list_of_models_is_said(body: bytes) -> None:
    with pytest.raises(ValueError, match="list of models"):
        UPSTREAM.read_models(body)


def test_the_list_of_models_is_a_get() -> None:
    asked = UPSTREAM.models_request(endpoint=ENDPOINT)

    assert (asked.path, asked.headers, asked.body) == ("/models", (), None)
