"""Server-sent events and newline-delimited JSON from bytes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.providers.shared.ndjson import NdjsonDecoder
from helmdash.providers.shared.sse import SseDecoder, SseEvent, SseSplitter

# Bytes that matter to the format, so that chance finds its corners.
WIRE = st.lists(
    st.sampled_from(
        [
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"data:",
            b"data: x",
            b"event: e",
            b":",
            b" ",
            b"\xef\xbb\xbf",
        ]
    ),
    max_size=24,
).map(b"".join)


def read(*pieces: bytes, largest_bytes: int = 1000) -> list[SseEvent]:
    decoder = SseDecoder(largest_bytes=largest_bytes)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush()


def lines_of(*pieces: bytes, largest_bytes: int = 1000) -> list[bytes]:
    decoder = NdjsonDecoder(largest_bytes=largest_bytes)
    lines = [line for piece in pieces for line in decoder.feed(piece)]
    return lines + decoder.flush()


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    marks = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(marks)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [("message", b"a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("message", b"a"), ("message", b"b")]),
        (b"data: a\r\rdata: b\r\r", [("message", b"a"), ("message", b"b")]),
        # line ends of two kinds in one stream
        (b"data: a\n\r\ndata: b\r\n\n", [("message", b"a"), ("message", b"b")]),
        # only the one space after the colon is the format's
        (b"data:a\n\ndata:  b\n\n", [("message", b"a"), ("message", b" b")]),
        # several lines of data are one event
        (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
        (b"data\n\n", [("message", b"")]),
        (b"event: ping\ndata: {}\n\n", [("ping", b"{}")]),
        # a name without data is no event, and does not stay for the next
        (b"event: ping\n\ndata: a\n\n", [("message", b"a")]),
        (b": comment\n\n: another\ndata: a\n\n", [("message", b"a")]),
        (b"id: 1\nretry: 5\nunknown: x\ndata: a\n\n", [("message", b"a")]),
        # a byte order mark at the start only
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [("message", b"a")]),
        # the upstream closed before the blank line
        (b"data: a\n\ndata: b", [("message", b"a"), ("message", b"b")]),
        (b"data: a\n", [("message", b"a")]),
        (b"\n\n\ndata: a\n\n\n\n", [("message", b"a")]),
        (b"", []),
    ],
)
def test_a_stream_reads_as_the_standard_says(
    stream: bytes, expected: list[tuple[str, bytes]]
) -> None:
    assert [(event.event, event.data) for event in read(stream)] == expected


@settings(max_examples=100, deadline=None)
@given(data=WIRE, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_any_split_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    assert read(*pieces_of(data, cuts)) == read(data)


@settings(max_examples=100, deadline=None)
@given(data=WIRE, cuts=st.lists(st.integers(0, 200), max_size=6), largest=st.integers(1, 20))
def test_blocks_joined_are_the_stream_even_when_one_is_too_long(
    data: bytes, cuts: list[int], largest: int
) -> None:
    whole, split = SseSplitter(largest_bytes=largest), SseSplitter(largest_bytes=largest)

    at_once = whole.feed(data)
    in_pieces = [block for piece in pieces_of(data, cuts) for block in split.feed(piece)]

    assert in_pieces == at_once
    assert split.too_long == whole.too_long
    assert b"".join([*at_once, *whole.flush()]) == data


def test_each_event_keeps_its_own_bytes() -> None:
    first, second = b": hi\r\nevent: e\r\ndata: a\r\n\r\n", b"data: b\n\n"

    assert [event.raw for event in read(first + second)] == [first, second]


def test_an_event_that_is_too_long_ends_the_stream() -> None:
    decoder = SseDecoder(largest_bytes=20)

    events = decoder.feed(b"data: a\n\ndata: " + b"x" * 30)

    assert [event.data for event in events] == [b"a"]
    assert decoder.too_long
    assert decoder.feed(b"\n\ndata: b\n\n") == []
    assert decoder.flush() == []


def test_an_event_of_a_megabyte_in_small_pieces_is_read_in_one_pass() -> None:
    data = b"data: " + b"x" * 1_000_000 + b"\n\n"

    (event,) = read(*(data[at : at + 100] for at in range(0, len(data), 100)), largest_bytes=2**21)

    assert len(event.data) == 1_000_000


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        # blank lines are keep-alives
        (b'\n\n{"a":1}\n \n', [b'{"a":1}']),
        (b"", []),
    ],
)
def test_lines_of_json_are_cut_at_their_ends(stream: bytes, expected: list[bytes]) -> None:
    assert lines_of(stream) == expected


@settings(max_examples=100, deadline=None)
@given(
    data=st.lists(st.sampled_from([b"\n", b"\r\n", b"{}", b" ", b"xyz"]), max_size=20).map(
        b"".join
    ),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
def test_any_split_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    assert lines_of(*pieces_of(data, cuts)) == lines_of(data)


def test_a_line_that_is_too_long_ends_the_stream() -> None:
    decoder = NdjsonDecoder(largest_bytes=10)

    assert decoder.feed(b"{}\n" + b"x" * 11) == [b"{}"]
    assert decoder.too_long
    assert decoder.feed(b"\n{}\n") == []
