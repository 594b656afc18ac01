"""The samples in fixtures/wire/anthropic read as they say, whole and in pieces."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers.anthropic import UPSTREAM
from helmdash.providers.anthropic.counting import AnthropicCounting
from helmdash.providers.wire import ChatRequest, Event, Reply

SAMPLES = Path(__file__).parents[2] / "fixtures" / "wire" / "anthropic"
REQUEST = ChatRequest(model="m", messages=())


def load(name: str) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return sample


def names(kind: str) -> list[str]:
    return sorted(path.stem for path in SAMPLES.glob(f"{kind}*.json"))


def said(value: Any) -> dict[str, Any]:
    told = dataclasses.asdict(value).items()
    listed = {name: list(one) if isinstance(one, tuple) else one for name, one in told}
    return {name: one for name, one in listed.items() if one not in (None, [])}


def named(value: Any) -> dict[str, Any]:
    return {type(value).__name__: said(value)}


def reply_as_json(reply: Reply) -> dict[str, Any]:
    return {**said(reply), "parts": [named(part) for part in reply.parts]}


def read_stream(pieces: list[bytes]) -> list[Event]:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.flush()


def test_every_sample_says_where_it_comes_from() -> None:
    for path in SAMPLES.glob("*.json"):
        assert json.loads(path.read_text())["source"], path.name


@pytest.mark.parametrize("name", names("reply"))
def test_a_reply_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)

    reply = UPSTREAM.read_reply(json.dumps(sample["body"]).encode(), request=REQUEST)

    assert reply_as_json(reply) == sample["reads_as"]


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)
    data = "\n".join(sample["stream"]).encode()

    assert [named(event) for event in read_stream([data])] == sample["reads_as"]


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_that_comes_byte_by_byte_reads_the_same(name: str) -> None:
    data = "\n".join(load(name)["stream"]).encode()

    assert read_stream([data[at : at + 1] for at in range(len(data))]) == read_stream([data])


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(names("stream")), data=st.data(), has_crlf=st.booleans())
def test_a_stream_reads_the_same_however_it_is_split(
    name: str, data: st.DataObject, has_crlf: bool
) -> None:
    raw = ("\r\n" if has_crlf else "\n").join(load(name)["stream"]).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))

    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    assert read_stream(pieces) == read_stream([raw])


@pytest.mark.parametrize("name", names("error"))
def test_an_error_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)
    body = sample["body"]
    raw = body if isinstance(body, str) else json.dumps(body)

    assert said(UPSTREAM.read_error(sample["status"], raw.encode())) == sample["reads_as"]


def test_the_lists_read_as_their_samples_say() -> None:
    models, count = load("models"), load("count")

    assert list(UPSTREAM.read_models(json.dumps(models["body"]).encode())) == models["reads_as"]
    assert json.loads(AnthropicCounting().write_count(count["reads_as"])) == count["body"]
