"""Every format of a client towards every format of an upstream: hostile JSON meets one verdict.

Whether a request is refused is a matter of the request, and not of whose format it goes on to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.conversations import fingerprints
from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind, WireFormat
from helmdash.doors.bodies.jsontext import MAX_DEPTH, BadJson, find_too_deep, load_json
from helmdash.doors.faults import BadBody
from helmdash.doors.validation import read_object
from helmdash.gateway import message_digest
from helmdash.gateway.refusals import Refusal
from helmdash.gateway.requests.options import parse
from helmdash.providers import registry
from helmdash.providers.errors import BadRequest, CannotTranslate
from tests.gateway.mirror import SHAPES, chat

MODEL = "claude-x"
UPSTREAMS = ("openai", "anthropic", "gemini", "ollama", "responses")


def nested(levels: int) -> Any:
    """A mark that `written` puts so many levels of objects for: json.dumps goes less deep."""
    return f"nested:{levels}"


def schema_of(levels: int) -> Any:
    """A schema of nested objects: two levels of JSON for each."""
    value: object = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {"a": value}}
    return value


def written(value: object) -> bytes:
    def levels(found: re.Match[bytes]) -> bytes:
        count = int(found[1])
        return b'{"a":' * count + b"1" + b"}" * count

    # Bare, and in the text that OpenAI's arguments are.
    text = re.sub(rb'"nested:(\d+)"', levels, json.dumps(value).encode())
    return re.sub(rb"nested:(\d+)", lambda found: levels(found).replace(b'"', b'\\"'), text)


def verdict(shape: str, kind: str, text: bytes) -> str:
    """What becomes of a request: sent, or why not. Anything else that is raised is a 500."""
    client = registry.CLIENTS[shape]
    is_other = kind == "responses"  # OpenAI's other API, where it is the only one
    endpoint = Endpoint(
        name=kind,
        kind=ProviderKind.OPENAI if is_other else ProviderKind(kind),
        base_url="http://upstream",
        api_key="key",
        formats=(WireFormat.RESPONSES,) if is_other else (),
    )
    is_native = client.wire is endpoint.own_format
    in_path = shape.startswith("gemini")
    try:
        parsed = parse(text)
        request = client.read_request(
            parsed, model=MODEL if in_path else None, stream=False if in_path else None
        )
        if is_native:
            client.pass_request(
                text, parsed, endpoint=endpoint, model="other", stream=request.stream
            )
        else:
            registry.SPOKEN[endpoint.own_format].write_request(
                request, endpoint=endpoint, model=MODEL
            )
    except Refusal as refusal:
        return f"{refusal.error.status} {refusal.error.message}"
    except (BadRequest, CannotTranslate) as error:
        return f"400 {error}"
    # What the record is made of.
    message_digest.kept_messages(request)
    fingerprints.links_of(message_digest.turns_of(request.messages), reply=None, is_retry=False)
    return "sent"


HOSTILE: Mapping[str, Mapping[str, Any]] = {
    "metadata at the limit": {"metadata": nested(MAX_DEPTH - 1)},
    "metadata beyond it": {"metadata": nested(MAX_DEPTH)},
    "metadata that no writer writes": {"metadata": nested(300)},
    "metadata that no reader reads": {"metadata": nested(1100)},
    "schema": {"schema": schema_of(90)},
    "deep schema": {"schema": schema_of(150)},
    "schema of 400 levels": {"schema": schema_of(200)},
    "arguments": {"arguments": nested(180)},
    "deep arguments": {"arguments": nested(260)},
    "arguments of a thousand levels": {"arguments": nested(950)},
    "arguments that are a list": {"arguments": [1]},
    "arguments that are a number": {"arguments": 5},
    "arguments that are half an object": {"arguments": '{"a": tru'},
    "NUL": {"text": "a\0b", "metadata": {"a\0": "\0"}, "tool": "a\0", "schema": {"type": "object"}},
    "large numbers": {"metadata": {"n": 2**70}, "schema": {"type": "integer", "maximum": 2**70}},
    "large arguments": {"arguments": {"n": 2**70, "m": -(2**63), "u": 2**64 - 1}},
    "a thousand tools": {"tools": 1000, "schema": {"type": "object"}},
    "long names": {"tool": "t" * 5000, "call_id": "i" * 5000, "arguments": {}},
    "schema that is a list": {"schema": [1]},
    "schema that is a flag": {"schema": True},
    "odd schema": {"schema": {"type": ["object", None, 5], "properties": [1], "$ref": 5}},
    "odder schema": {"schema": {"properties": None, "anyOf": "x", "enum": {}, "items": 5}},
    "text that is a number": {"text": 5},
    "text that is a list": {"text": [[[]]]},
    "text that is an object": {"text": {"type": "text"}},
    "metadata that is a text": {"metadata": "x"},
    "metadata that is a list": {"metadata": [1]},
    "words for numbers": {"temperature": "hot", "options": {"temperature": "hot"}},
    "large counts": {
        "max_tokens": 2**70,
        "options": {"num_predict": 2**70},
        "generationConfig": {"maxOutputTokens": 2**70},
    },
    "counts beyond 64 bits": {
        "max_tokens": 2**63,
        "seed": -(2**64),
        "options": {"top_k": 2**64 - 1},
        "generationConfig": {"topK": 2**63},
    },
    "large temperatures": {"temperature": 1e300, "options": {"temperature": 1e300}},
    "stop words that are objects": {"stop": [{"a": 1}], "options": {"stop": [{"a": 1}]}},
    "deep members nobody knows": {"format": nested(150), "options": nested(150)},
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_one_verdict_whatever_the_upstream_speaks(hostile: Mapping[str, Any]) -> None:
    for shape in SHAPES:
        text = written(chat(shape, MODEL, **hostile))

        found = {kind: verdict(shape, kind, text) for kind in UPSTREAMS}

        assert len(set(found.values())) == 1, (shape, found)


# Clients draw them of all 64 bits, and OpenAI's API says that they may.
@pytest.mark.parametrize("seed", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_a_seed_of_64_bits_is_sent(seed: int) -> None:
    said: dict[str, Any] = {
        "seed": seed,
        "options": {"seed": seed},
        "generationConfig": {"seed": seed},
    }
    for shape in SHAPES:
        text = written(chat(shape, MODEL, **said))

        found = {kind: verdict(shape, kind, text) for kind in UPSTREAMS}

        assert set(found.values()) == {"sent"}, (shape, found)


# Texts that json.dumps does not write.
@pytest.mark.parametrize(
    ("place", "is_refused"),
    [
        (b"1e400", True),  # no double
        (b"NaN", True),
        (b"-Infinity", True),
        (b'"\\ud800"', True),  # half of a pair
        (b'"\xff"', True),
        (b"1" * 400, True),
        (b"12345678901234567890123456789", False),
        (b'{"a":1,"a":2}', False),
        (b"[" * 5000, True),
    ],
)
def test_what_is_no_sound_json_is_refused_alike(place: bytes, is_refused: bool) -> None:
    for shape in SHAPES:
        # Anthropic's metadata has to be an object.
        text = written(chat(shape, MODEL, metadata={"a": "HERE"})).replace(b'"HERE"', place)

        found = {verdict(shape, kind, text) for kind in UPSTREAMS}

        assert len(found) == 1
        assert (found != {"sent"}) == is_refused, (shape, found)


@pytest.mark.parametrize("mode", [["auto"], {"a": 1}, 5, "none of these"])
def test_a_word_that_is_no_word_is_refused_by_its_name(mode: object) -> None:
    choice = {"type": "allowed_tools", "mode": mode, "tools": []}
    text = written({"model": MODEL, "input": "Hi", "tool_choice": choice})

    found = verdict("openai_responses", "gemini", text)

    assert found.startswith("400 tool_choice.mode: "), found


def test_a_refusal_for_depth_names_the_member_and_the_limit() -> None:
    text = written(chat("openai", MODEL, metadata=nested(300)))

    assert verdict("openai", "gemini", text) == (
        f"400 {('metadata' + '.a' * 40)[:63]}…: must not be nested more than 200 levels deep."
    )


def test_depth_beyond_all_reading_is_told_as_depth() -> None:
    text = written(chat("openai", MODEL, metadata=nested(5_000)))

    said = "The body is nested more than 200 levels deep."
    assert verdict("openai", "gemini", text) == f"400 {said}"
    with pytest.raises(BadJson, match="nested more than 200 levels deep"):
        load_json(text)
    with pytest.raises(BadBody, match="nested more than 200 levels deep"):
        read_object(text)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    shape=st.sampled_from(SHAPES),
    schema=JSON,
    arguments=JSON,
    text=JSON,
    name=st.sampled_from(
        ["metadata", "max_tokens", "temperature", "stop", "tools", "messages", "options", "format",
         "contents", "generationConfig", "system", "toolConfig", "tool_choice", "response_format"]
    ),
    value=JSON,
)  # fmt: skip
def test_no_json_makes_a_fault_of_ours(
    shape: str, schema: object, arguments: object, text: object, name: str, value: object
) -> None:
    body = chat(shape, MODEL, text=text, schema=schema, arguments=arguments)

    for sent in (body, {**body, name: value}):
        for kind in UPSTREAMS:
            assert verdict(shape, kind, written(sent))


@given(
    levels=st.integers(MAX_DEPTH - 3, MAX_DEPTH + 60),
    beside=st.integers(0, 300),
    is_list=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_depth_is_measured_to_the_level(levels: int, beside: int, is_list: bool) -> None:
    opening, closing = (b"[", b"]") if is_list else (b'{"a":', b"}")
    text = b'{"x":[%s],"y":%s1%s}' % (
        b",".join([b"[]"] * beside),
        opening * (levels - 1),
        closing * (levels - 1),
    )

    assert (find_too_deep(text, json.loads(text)) is not None) == (levels > MAX_DEPTH)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize(
    ("shape", "body"),
    [
        ("openai", {"messages": [{"role": "user", "content": [{"type": "k" * 9_000}]}]}),
        (
            "anthropic",
            {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "k" * 9_000}]}]},
        ),
        ("gemini", {"contents": [{"role": "user", "parts": [{"k" * 9_000: {}}]}]}),
    ],
)
def test_what_is_refused_quotes_little_of_the_request(
    shape: str, body: dict[str, Any], upstream: str
) -> None:
    assert len(verdict(shape, upstream, written({"model": MODEL, **body}))) < 300
