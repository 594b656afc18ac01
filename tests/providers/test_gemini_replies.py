"""Gemini: replies, errors, lists and streams as its clients get them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx
import orjson
import pytest
from google import genai
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.calls.usage import Usage, normalise_usage
from helmdash.providers.gemini import ARRAY_CLIENT, CLIENT, UPSTREAM
from helmdash.providers.gemini.counting import GeminiCounting
from helmdash.providers.gemini.json_array import ObjectDecoder
from helmdash.providers.protocols import ClientFormat, ListedModel, ReplyContext
from helmdash.providers.wire import (
    ChatRequest,
    Ended,
    Event,
    Failed,
    Finished,
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
ANSWER = ReplyContext(call_id="call-1", model="openai/gpt-5", created=1_700_000_000)

TEXTS = st.text(min_size=1, max_size=12)
SIGNATURES = st.sampled_from(["gemini:c2ln", "gemini:ZW5k"])
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-9, 9), st.booleans()), max_size=3)
CALLS = st.builds(
    ToolCall,
    id=TEXTS,
    name=TEXTS,
    arguments=ARGUMENTS.map(lambda value: orjson.dumps(value).decode()),
)
PARTS = st.lists(
    st.one_of(
        st.builds(Text, text=TEXTS),
        st.builds(Reasoning, text=TEXTS, signature=st.none() | SIGNATURES),
        st.builds(Reasoning, text=st.just(""), signature=SIGNATURES),
        CALLS,
    ),
    max_size=5,
).map(tuple)
USAGES = st.fixed_dictionaries(
    {"promptTokenCount": st.integers(1, 99)}, optional={"candidatesTokenCount": st.integers(1, 99)}
)


@settings(max_examples=80, deadline=None)
@given(
    reply=st.builds(
        Reply,
        id=TEXTS,
        model=TEXTS,
        parts=PARTS,
        finish_reason=st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", None]),
        usage=st.none() | USAGES,
    )
)
def test_a_reply_that_was_written_reads_as_the_same_reply(reply: Reply) -> None:
    body = CLIENT.write_reply(reply, answer=ANSWER)

    assert UPSTREAM.read_reply(body, request=REQUEST) == reply
    genai.types.GenerateContentResponse.model_validate(json.loads(body))


def written(reply: Reply) -> genai.types.GenerateContentResponse:
    body = json.loads(CLIENT.write_reply(reply, answer=ANSWER))
    return genai.types.GenerateContentResponse.model_validate(body)


def test_another_providers_reply_is_what_the_sdk_expects() -> None:
    reply = Reply(
        id="chatcmpl-1",
        model="gpt-5",
        parts=(
            Reasoning(text="Hm.", signature="EqQBCkYIAxgC"),
            Text(text="Low."),
            ToolCall(id="call_a", name="f", arguments='{"a":1}'),
        ),
        finish_reason="tool_calls",
        usage={
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 17,
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    )

    found = written(reply)

    assert found.text == "Low."
    assert found.function_calls == [genai.types.FunctionCall(id="call_a", name="f", args={"a": 1})]
    assert found.candidates is not None
    assert found.candidates[0].finish_reason is genai.types.FinishReason.STOP
    assert found.usage_metadata is not None
    assert found.usage_metadata.prompt_token_count == 10
    assert found.usage_metadata.candidates_token_count == 3
    assert found.usage_metadata.thoughts_token_count == 4
    assert (found.response_id, found.model_version) == ("chatcmpl-1", "gpt-5")
    # another vendor's signature is no business of a Gemini client
    assert "EqQB" not in CLIENT.write_reply(reply, answer=ANSWER).decode()


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17},
        {"input_tokens": 3, "cache_read_input_tokens": 5, "output_tokens": 2},
        {"prompt_eval_count": 4, "eval_count": 6},
        {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    ],
)
def test_usage_keeps_its_meaning_in_geminis_names(usage: dict[str, Any]) -> None:
    body = json.loads(CLIENT.write_reply(Reply(usage=usage), answer=ANSWER))

    before, after = normalise_usage(usage), normalise_usage(body["usageMetadata"])
    assert after == Usage(
        prompt_tokens=before.prompt_tokens,
        completion_tokens=before.completion_tokens,
        total_tokens=before.total_tokens,
        cached_tokens=before.cached_tokens,
        reasoning_tokens=before.reasoning_tokens,
    )


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
def test_unknown_usage_is_left_out(usage: dict[str, Any] | None) -> None:
    assert written(Reply(usage=usage)).usage_metadata is None


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "STOP"),
        ("tool_use", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("refusal", "SAFETY"),
        ("error", "OTHER"),
        ("something new", "OTHER"),
        ("RECITATION", "RECITATION"),
        (None, None),
    ],
)
def test_a_finish_reason_is_one_of_geminis(reason: str | None, word: str | None) -> None:
    candidates = written(Reply(finish_reason=reason)).candidates

    assert candidates is not None
    assert candidates[0].finish_reason == (genai.types.FinishReason(word) if word else None)


def test_a_reason_that_only_prompts_are_blocked_for_is_said_as_such() -> None:
    found = written(Reply(finish_reason="JAILBREAK"))

    assert found.candidates is None
    assert found.prompt_feedback is not None
    assert found.prompt_feedback.block_reason is genai.types.BlockedReason.JAILBREAK


def test_a_refusal_is_text_to_a_client_that_knows_none() -> None:
    assert written(Reply(refusal="I will not.")).text == "I will not."


def test_arguments_that_are_no_object_are_kept_under_one_member() -> None:
    call = ToolCall(id="c", name="f", arguments='{"a":')

    calls = written(Reply(parts=(call,))).function_calls

    assert calls == [genai.types.FunctionCall(id="c", name="f", args={"_arguments": '{"a":'})]


# --- errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (WireError(message="m", status=401, code="invalid_key"), "UNAUTHENTICATED"),
        (WireError(message="m", status=429, retry_after_s=1.5), "RESOURCE_EXHAUSTED"),
        (WireError(message="m", status=418), "INVALID_ARGUMENT"),
        (WireError(message="m"), "INTERNAL"),
        (WireError(message="m", status=599), "INTERNAL"),
        (WireError(message="m", status=400, code="FAILED_PRECONDITION"), "FAILED_PRECONDITION"),
    ],
)
def test_an_error_reads_back_as_it_was_written(error: WireError, status: str) -> None:
    body = CLIENT.write_error(error)

    found = UPSTREAM.read_error(error.status or 500, body)

    assert found.code == status
    assert (found.message, found.retry_after_s) == ("m", error.retry_after_s)
    assert found.type in (error.code, None)


def test_an_error_inside_a_200_is_written_as_an_error() -> None:
    error = WireError(message="Overloaded", status=503)

    assert CLIENT.write_reply(Reply(error=error), answer=ANSWER) == CLIENT.write_error(error)


# --- lists and counts


def test_models_are_what_the_sdk_expects() -> None:
    body = json.loads(
        CLIENT.write_models(
            [
                ListedModel(name="openai/gpt-5", owner="up"),
                ListedModel(name="gemini-2.5-flash", owner="up"),
            ],
            created=0,
        )
    )

    assert [model["name"] for model in body["models"]] == [
        "models/openai/gpt-5",
        "models/gemini-2.5-flash",
    ]
    assert UPSTREAM.read_models(json.dumps(body).encode()) == ("openai/gpt-5", "gemini-2.5-flash")
    assert (
        json.loads(CLIENT.write_model(ListedModel(name="gemini-2.5-flash", owner="up"), created=0))
        == body["models"][1]
    )


# --- streams


def stream(client_format: ClientFormat, events: Iterable[Event]) -> bytes:
    writer = client_format.stream_writer(answer=ANSWER, request=REQUEST)
    return b"".join([*(writer.write(event) for event in events), writer.close(), writer.close()])


def read(data: bytes) -> list[Event]:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    return [*reader.feed(data), *reader.flush()]


def events_of(parts: Iterable[Part]) -> list[Event]:
    """A reply as the events of a stream; calls last, since Gemini's writer keeps them back."""
    found: list[Event] = []
    calls = 0
    for part in sorted(parts, key=lambda part: isinstance(part, ToolCall)):
        if isinstance(part, Text):
            found.append(TextDelta(text=part.text))
        elif isinstance(part, Reasoning):
            found.append(ReasoningDelta(text=part.text, signature=part.signature))
        elif isinstance(part, ToolCall):
            found.append(ToolCallStarted(index=calls, id=part.id, name=part.name))
            found.append(ToolCallDelta(index=calls, arguments=part.arguments))
            calls += 1
    return found


UNSEALED = PARTS.map(
    lambda parts: [part for part in parts if not isinstance(part, Reasoning) or part.text]
)


@settings(max_examples=70, deadline=None)
@given(parts=UNSEALED, usage=USAGES, client_format=st.sampled_from([CLIENT, ARRAY_CLIENT]))
def test_a_stream_that_was_written_reads_as_the_same_events(
    parts: list[Part], usage: dict[str, Any], client_format: ClientFormat
) -> None:
    events: list[Event] = [
        Started(id="r", model="m"),
        *events_of(parts),
        UsageSeen(usage=usage),
        Finished(reason="STOP"),
        Ended(),
    ]

    found = read(stream(client_format, events))

    assert found == events


def test_a_signature_is_written_on_the_part_after_it() -> None:
    events: list[Event] = [
        ReasoningDelta(text="", signature="gemini:c2ln"),
        ToolCallStarted(index=0, id="c", name="f"),
        ReasoningDelta(text="", signature="gemini:ZW5k"),
        Finished(reason="STOP"),
    ]

    data = stream(CLIENT, events)

    parts = json.loads(data.split(b"data: ", 1)[1])["candidates"][0]["content"]["parts"]
    assert parts == [
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


def test_an_error_ends_the_stream() -> None:
    failed = Failed(error=WireError(message="Overloaded", status=503, code="UNAVAILABLE"))
    events: list[Event] = [TextDelta(text="a"), failed, TextDelta(text="b"), Ended()]

    for client_format in (CLIENT, ARRAY_CLIENT):
        found = read(stream(client_format, events))
        assert found[1:] == [TextDelta(text="a"), failed]


@pytest.mark.parametrize(
    ("client_format", "bad"),
    [(CLIENT, b"data: {oops\r\n\r\ndata: 7\r\n\r\n"), (ARRAY_CLIENT, b"{oops},\r\n{},\r\n{1}")],
)
def test_reading_goes_on_after_a_chunk_that_cannot_be_read(
    client_format: ClientFormat, bad: bytes
) -> None:
    usage = UsageSeen(usage={"promptTokenCount": 2})
    others: list[Event] = [TextDelta(text="b"), usage, Finished(reason="STOP")]
    writer = client_format.stream_writer(answer=ANSWER, request=REQUEST)
    comma = b",\r\n" if client_format is ARRAY_CLIENT else b""
    data = writer.write(TextDelta(text="a")) + comma + bad
    data += b"".join(writer.write(event) for event in others) + comma + bad + writer.close()

    events = read(data)

    assert [type(event) for event in events[1:]] == [
        TextDelta,
        Failed,
        TextDelta,
        UsageSeen,
        Finished,
        Ended,
    ]
    assert isinstance(events[2], Failed)
    assert events[2].error.code == "undecodable_stream"
    reader = UPSTREAM.stream_reader(request=REQUEST)
    one_by_one = [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]
    assert [*one_by_one, *reader.flush()] == events


def test_a_stream_cut_off_within_a_chunk_is_not_given_an_end() -> None:
    chunk = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}'

    events = read(chunk + b"\n\ndata: {oops\n\n" + chunk + b"\n\n" + chunk[:-9])

    assert [type(event) for event in events] == [TextDelta, Failed, TextDelta]


def test_a_page_of_html_is_told_as_its_visible_text() -> None:
    page = b"<!doctype html><title>502 Bad Gateway</title><p>nginx</p>"

    error = UPSTREAM.read_error(502, page)

    assert error == WireError(message="502 Bad Gateway", status=502)


def test_a_stream_that_was_cut_off_is_not_given_an_end() -> None:
    data = stream(CLIENT, [TextDelta(text="a")])

    assert Ended() not in read(data)
    assert not any(isinstance(event, Finished) for event in read(data))


def test_an_array_is_json_whatever_was_in_it() -> None:
    failed = Failed(error=WireError(message="x"))
    said: list[Event] = [TextDelta(text="a"), Finished(reason="stop"), Ended()]
    streams: list[list[Event]] = [[], said, [failed]]
    for events in streams:
        assert isinstance(json.loads(stream(ARRAY_CLIENT, events)), list)


@pytest.mark.parametrize("before", [b"", b"\r\n", b"\xef\xbb\xbf", b": hello\n\n"])
def test_a_stream_may_begin_with_blanks_a_mark_or_a_comment(before: bytes) -> None:
    chunk = b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}'
    whole = before + b"data: " + chunk

    assert read(whole) == [TextDelta(text="a")]
    reader = UPSTREAM.stream_reader(request=REQUEST)
    pieces = [whole[at : at + 1] for at in range(len(whole))]
    assert [event for piece in pieces for event in reader.feed(piece)] == []
    assert reader.flush() == [TextDelta(text="a")]


def test_rubbish_between_objects_and_an_endless_event_are_given_up_once() -> None:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    assert [type(one) for one in reader.feed(b'[{"candidates":[]}, x')] == [Failed]
    assert [*reader.feed(b'{"candidates":[]}]'), *reader.flush()] == []

    endless = UPSTREAM.stream_reader(request=REQUEST)
    piece = b"data: " + b"x" * 9 * 1024 * 1024
    found = [event for _ in range(3) for event in endless.feed(piece)]
    assert [type(one) for one in [*found, *endless.flush()]] == [Failed]


def test_objects_of_an_array_are_found_and_rubbish_between_them_is_not() -> None:
    decoder = ObjectDecoder(largest_bytes=20)

    assert decoder.feed(b'[{"a":"}\\""},\n{"b":{}}') == [b'{"a":"}\\""}', b'{"b":{}}']
    assert decoder.feed(b'{"c') == []
    assert decoder.flush() == b'{"c'
    assert decoder.feed(b'":1}, x {"d":1}') == [b'{"c":1}']
    assert decoder.is_broken
    assert decoder.feed(b'{"e":1}') == []


@pytest.mark.parametrize("pieces", [[b'[{"a":"' + b"x" * 40 + b'"}'], [b'[{"a":"', b"x" * 40]])
def test_an_object_over_the_limit_ends_the_reading(pieces: list[bytes]) -> None:
    decoder = ObjectDecoder(largest_bytes=20)

    assert [found for piece in pieces for found in decoder.feed(piece)] == []
    assert decoder.is_broken


# --- the official SDK


def client(answers: bytes, *, status: int = 200) -> genai.Client:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=answers))
    return genai.Client(
        api_key="k",
        http_options=genai.types.HttpOptions(
            base_url="http://gateway.example",
            httpx_client=httpx.Client(transport=transport),
            retry_options=genai.types.HttpRetryOptions(attempts=1),
        ),
    )


def test_the_sdk_reads_our_stream() -> None:
    events: list[Event] = [
        Started(id="r", model="gpt-5"),
        ReasoningDelta(text="Hm."),
        TextDelta(text="Low "),
        RefusalDelta(text="water"),
        ToolCallStarted(index=0, id="c", name="f"),
        ToolCallDelta(index=0, arguments='{"a":'),
        ToolCallDelta(index=0, arguments="1}"),
        Finished(reason="tool_calls"),
        UsageSeen(usage={"prompt_tokens": 3, "completion_tokens": 2}),
        Ended(),
    ]

    with client(stream(CLIENT, events)) as sdk:
        chunks = list(sdk.models.generate_content_stream(model="m", contents="Tide?"))

    assert [chunk.text for chunk in chunks if chunk.text] == ["Low ", "water"]
    assert chunks[-1].function_calls == [genai.types.FunctionCall(id="c", name="f", args={"a": 1})]
    assert chunks[-1].usage_metadata is not None
    assert chunks[-1].usage_metadata.prompt_token_count == 3


def test_the_sdk_raises_our_errors_as_its_own() -> None:
    error = WireError(message="Too many", status=429, code="rate_limited")

    with (
        client(CLIENT.write_error(error), status=429) as sdk,
        pytest.raises(genai.errors.ClientError) as caught,
    ):
        sdk.models.generate_content(model="m", contents="Tide?")
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")

    failed = Failed(error=WireError(message="Overloaded", status=503))
    with (
        client(stream(CLIENT, [TextDelta(text="a"), failed])) as sdk,
        pytest.raises(genai.errors.ServerError),
    ):
        list(sdk.models.generate_content_stream(model="m", contents="Tide?"))


def test_the_sdk_reads_our_models_and_counts() -> None:
    with client(
        CLIENT.write_models(
            [ListedModel(name="a", owner="up"), ListedModel(name="b/c", owner="up")], created=0
        )
    ) as sdk:
        assert [model.name for model in sdk.models.list()] == ["models/a", "models/b/c"]
    with client(GeminiCounting().write_count(7)) as sdk:
        assert sdk.models.count_tokens(model="m", contents="Tide?").total_tokens == 7
