"""The samples in fixtures/wire/gemini and fixtures/wire/ollama read as they say."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers import gemini, ollama
from helmdash.providers.protocols import ClientFormat, UpstreamFormat
from helmdash.providers.wire import ChatRequest, Event, Message

WIRE = Path(__file__).parents[2] / "fixtures" / "wire"
REQUEST = ChatRequest(model="m", messages=())
CLIENT_FORMATS: dict[str, ClientFormat] = {
    "gemini": gemini.CLIENT,
    "ollama": ollama.CLIENT,
    "ollama/request_generate": ollama.GENERATE_CLIENT,
}


def names(what: str) -> list[str]:
    return [
        f"{kind}/{path.stem}"
        for kind in ("gemini", "ollama")
        for path in sorted((WIRE / kind).glob(f"{what}*.json"))
    ]


def load(name: str) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((WIRE / f"{name}.json").read_text())
    return sample


def body_of(name: str) -> bytes:
    body = load(name)["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def stream_of(name: str) -> bytes:
    return "\n".join(load(name)["stream"]).encode()


def upstream_of(name: str) -> UpstreamFormat:
    return gemini.UPSTREAM if name.startswith("gemini") else ollama.UPSTREAM


def client_of(name: str) -> ClientFormat:
    return CLIENT_FORMATS.get(name) or CLIENT_FORMATS[name.partition("/")[0]]


_NO_ORIGIN = ("origin", None)


def said(value: Any) -> dict[str, Any]:
    """What a value says, as the samples write it: through JSON, so that tuples are lists."""
    told = dataclasses.asdict(value).items()
    members = {name: one for name, one in told if one is not None and one != ()}
    plain: dict[str, Any] = json.loads(json.dumps(members), object_hook=_unmarked)
    return plain


def _unmarked(value: dict[str, Any]) -> dict[str, Any]:
    """Texts inside a tool's result, too, say of their mark only that there is one; so do tools of
    what else they are."""
    said = value.items()
    return {name: one for name, one in said if (name, one) not in (("cache", None), _NO_ORIGIN)}


def named(value: Any) -> dict[str, Any]:
    return {type(value).__name__: said(value)}


def with_parts(value: Any) -> dict[str, Any]:
    return {**said(value), "parts": [named(part) for part in value.parts]}


def message_as_json(message: Message) -> dict[str, Any]:
    return with_parts(message)


def read_stream(name: str, pieces: list[bytes]) -> list[Event]:
    reader = upstream_of(name).stream_reader(request=REQUEST)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.flush()


@pytest.mark.parametrize("name", names(""))
def test_every_sample_says_where_it_comes_from(name: str) -> None:
    assert load(name)["source"]


@pytest.mark.parametrize("name", names("reply"))
def test_a_reply_reads_as_its_sample_says(name: str) -> None:
    reply = upstream_of(name).read_reply(body_of(name), request=REQUEST)

    assert with_parts(reply) == load(name)["reads_as"]


@pytest.mark.parametrize("name", names("error"))
def test_an_error_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)

    assert said(upstream_of(name).read_error(sample["status"], body_of(name))) == sample["reads_as"]


@pytest.mark.parametrize("name", names("models"))
def test_a_list_of_models_reads_as_its_sample_says(name: str) -> None:
    assert list(upstream_of(name).read_models(body_of(name))) == load(name)["reads_as"]


@pytest.mark.parametrize("name", names("embeddings"))
def test_embeddings_read_as_their_sample_says(name: str) -> None:
    assert said(upstream_of(name).read_embeddings(body_of(name))) == load(name)["reads_as"]


@pytest.mark.parametrize("name", names("request"))
def test_a_request_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)

    request = client_of(name).read_request(
        sample["body"], model=sample.get("model"), stream=sample.get("is_stream")
    )

    found = {**said(request), "messages": [message_as_json(one) for one in request.messages]}
    assert {member: one for member, one in found.items() if one not in ([], {})} == (
        sample["reads_as"]
    )


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_reads_as_its_sample_says(name: str) -> None:
    events = read_stream(name, [stream_of(name)])

    assert [named(event) for event in events] == load(name)["reads_as"]


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_that_comes_byte_by_byte_reads_the_same(name: str) -> None:
    data = stream_of(name)

    assert read_stream(name, [data[at : at + 1] for at in range(len(data))]) == (
        read_stream(name, [data])
    )


@settings(max_examples=80, deadline=None)
@given(name=st.sampled_from(names("stream")), data=st.data(), has_crlf=st.booleans())
def test_a_stream_reads_the_same_however_it_is_split(
    name: str, data: st.DataObject, has_crlf: bool
) -> None:
    whole = stream_of(name)
    if has_crlf:
        whole = whole.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    edges = [0, *cuts, len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]

    assert read_stream(name, pieces) == read_stream(name, [whole])


JUNK = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":1}}]}}]}\n\n',
            b'data: {"candidates":{"content":7},"usageMetadata":[],"promptFeedback":1}\n\n',
            b'data: {"error":[]}\n\n',
            b'data: {"error":{"details":[1],"code":"x"}}\n\n',
            b"data: [DONE]\n\n",
            b'[{"candidates":[]},',
            b'{"a":"\\',
            b'{"message":{"content":7,"tool_calls":[{}, 1]},"done":1}\n',
            b'{"message":[],"response":"x","done":false}\n',
            b'{"model":3,"done":true}\n',
            b'{"error":{"message":5}}\n',
            b"[" * 2000 + b"\n\n",
            b'{"message":{"tool_calls":[{"function":{"arguments":'
            + b"[" * 300
            + b"]" * 300
            + b"}}]}}\n",
            b"\xef\xbb\xbf",
            b"\xff\xfe\n\n",
        ]
    ),
)


@settings(max_examples=70, deadline=None)
@given(kind=st.sampled_from(["gemini", "ollama"]), pieces=st.lists(JUNK, max_size=6))
def test_rubbish_never_raises_and_reads_the_same_however_it_is_split(
    kind: str, pieces: list[bytes]
) -> None:
    whole = b"".join(pieces)

    assert read_stream(kind, pieces) == read_stream(kind, [whole])
    upstream_of(kind).read_reply(whole, request=REQUEST)
    upstream_of(kind).read_error(500, whole)
    upstream_of(kind).read_embeddings(whole)


@pytest.mark.parametrize("kind", ["gemini", "ollama"])
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"<html>", b"\xff"])
def test_what_is_no_reply_is_an_error_of_its_own_code(kind: str, body: bytes) -> None:
    error = upstream_of(kind).read_reply(body, request=REQUEST).error

    assert error is not None
    assert error.code == "undecodable_reply"


@pytest.mark.parametrize("kind", ["gemini", "ollama"])
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"models":{}}'])
def test_what_is_no_list_of_models_is_a_value_error(kind: str, body: bytes) -> None:
    with pytest.raises(ValueError):
        upstream_of(kind).read_models(body)
