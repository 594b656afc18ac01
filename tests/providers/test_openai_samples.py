"""The samples in fixtures/wire/openai read as they say, whole and in pieces, and pass through."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers.openai import UPSTREAM
from helmdash.providers.openai.stream_filter import OpenAIStreamFilter
from helmdash.providers.shared.collecting import collect
from helmdash.providers.wire import ChatRequest, Event, Text, UsageSeen

SAMPLES = Path(__file__).parents[2] / "fixtures" / "wire" / "openai"
REQUEST = ChatRequest(model="m", messages=())


def load(name: str) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return sample


def names(kind: str) -> list[str]:
    return sorted(path.stem for path in SAMPLES.glob(f"{kind}_*.json"))


def body_of(sample: dict[str, Any]) -> bytes:
    body = sample["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def stream_of(name: str, *, line_end: str = "\n") -> bytes:
    return (line_end.join(load(name)["stream"]) + line_end).encode()


def said(value: Any) -> dict[str, Any]:
    fields = dataclasses.asdict(value).items()
    return {name: one for name, one in fields if one is not None and one != ()}


def named(value: Any) -> dict[str, Any]:
    return {type(value).__name__: said(value)}


def read(pieces: list[bytes]) -> list[Event]:
    reader = UPSTREAM.stream_reader(request=REQUEST)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.flush()


def passed(pieces: list[bytes], *, hide_usage: bool) -> tuple[bytes, list[Event]]:
    passing = OpenAIStreamFilter(hide_usage=hide_usage)
    results = [passing.feed(piece) for piece in pieces]
    results.append(passing.flush())
    return b"".join(shown for shown, _ in results), [e for _, events in results for e in events]


def split_at(data: bytes, cuts: list[int]) -> list[bytes]:
    marks = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def check_split(name: str, *, cuts: list[int], line_end: str) -> None:
    """One random split of one sample; a benchmark may call this as often as it likes."""
    data = stream_of(name, line_end=line_end)
    pieces = split_at(data, cuts)

    assert read(pieces) == read([data])
    for hide_usage in (True, False):
        assert passed(pieces, hide_usage=hide_usage) == passed([data], hide_usage=hide_usage)


def test_every_sample_says_where_it_comes_from() -> None:
    starts = ("Recorded in ", "Written after ", "Written by hand")

    for path in SAMPLES.glob("*.json"):
        assert json.loads(path.read_text())["source"].startswith(starts), path.name


@pytest.mark.parametrize("name", names("reply"))
def test_a_reply_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)

    reply = UPSTREAM.read_reply(body_of(sample), request=REQUEST)

    shown = said(reply)
    if reply.parts:
        shown["parts"] = [named(part) for part in reply.parts]
    if reply.error is not None:
        shown["error"] = said(reply.error)
    assert shown == sample["reads_as"]


@pytest.mark.parametrize("name", names("error"))
def test_an_error_reads_as_its_sample_says(name: str) -> None:
    sample = load(name)

    error = UPSTREAM.read_error(sample["status"], body_of(sample))

    assert said(error) == sample["reads_as"]


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_reads_as_its_sample_says(name: str) -> None:
    events = [named(event) for event in read([stream_of(name)])]

    for event in events:
        if "Failed" in event:
            error = event["Failed"]["error"]
            event["Failed"]["error"] = {k: v for k, v in error.items() if v is not None}
    assert events == load(name)["reads_as"]


@pytest.mark.parametrize("name", names("stream"))
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_stream_reads_the_same_byte_by_byte_and_with_any_line_end(
    name: str, line_end: str
) -> None:
    data = stream_of(name, line_end=line_end)

    events = read([data[at : at + 1] for at in range(len(data))])

    assert events == read([stream_of(name)])


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(names("stream")),
    cuts=st.lists(st.integers(0, 5000), max_size=12),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_any_split_gives_the_same_events_and_the_same_bytes(
    name: str, cuts: list[int], line_end: str
) -> None:
    check_split(name, cuts=cuts, line_end=line_end)


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_whose_usage_may_be_seen_passes_byte_for_byte(name: str) -> None:
    data = stream_of(name)

    shown, events = passed([data], hide_usage=False)

    assert shown == data
    assert events == read([data])


@pytest.mark.parametrize("name", names("stream"))
def test_a_stream_whose_usage_is_hidden_is_the_same_without_it(name: str) -> None:
    data = stream_of(name)

    shown, events = passed([data], hide_usage=True)

    assert events == read([data])
    assert not any('"usage"' in line for line in shown.decode().split("\n") if "x_groq" not in line)
    seen = [event for event in read([shown]) if not isinstance(event, UsageSeen)]
    assert seen == [event for event in events if not isinstance(event, UsageSeen)]


@pytest.mark.parametrize("name", names("stream"))
def test_lines_without_usage_stay_as_they_came(name: str) -> None:
    lines = [line for line in load(name)["stream"] if '"usage"' not in line and line]

    shown, _ = passed([stream_of(name)], hide_usage=True)

    kept = shown.decode().split("\n")
    assert [line for line in kept if line in lines] == lines


@pytest.mark.parametrize("name", names("stream"))
def test_collected_text_is_the_text_of_the_deltas(name: str) -> None:
    said_texts = [e["TextDelta"]["text"] for e in load(name)["reads_as"] if "TextDelta" in e]

    reply = collect(read([stream_of(name)]))

    assert reply.text == "".join(said_texts)
    assert all(part.text for part in reply.parts if isinstance(part, Text))
