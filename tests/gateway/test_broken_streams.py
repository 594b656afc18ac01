"""A stream that stops within an event: what ends it is an event of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from helmdash.gateway.forwarding.streams.pipes import Pipe, dropping_pipe, native_pipe
from helmdash.providers import anthropic, gemini, ollama, openai, openai_responses
from helmdash.providers.protocols import ClientFormat, ReplyContext
from helmdash.providers.shared.sse import SseDecoder
from helmdash.providers.wire import ChatRequest, WireError
from tests.gateway.mirror import RESPONSES, streamed_reply

ERROR = WireError(message="The upstream closed the connection.", code="closed", status=502)
CLIENTS: dict[str, ClientFormat] = {
    "openai": openai.CLIENT,
    "anthropic": anthropic.CLIENT,
    "gemini": gemini.CLIENT,
    "ollama": ollama.CLIENT,
    RESPONSES: openai_responses.CLIENT,
}


def pipe_of(kind: str, *, wants_usage: bool = True) -> Pipe:
    client = CLIENTS[kind]
    request = ChatRequest(model="m", messages=(), stream=True, wants_usage=wants_usage)
    answer = ReplyContext(call_id="c", model="m", created=1, request=request)
    return native_pipe(client, request, client.stream_writer(answer=answer, request=request))


def generate_pipe() -> Pipe:
    client = ollama.GENERATE_CLIENT
    request = ChatRequest(model="m", messages=(), stream=True)
    answer = ReplyContext(call_id="c", model="m", created=1, request=request)
    reader = ollama.UPSTREAM.stream_reader(request=request)
    return dropping_pipe(reader, client.stream_writer(answer=answer, request=request))


def broken(pipe: Pipe, pieces: Iterable[bytes]) -> list[str]:
    """What a client reads of a stream of which only these pieces came, event by event."""
    shown = b"".join([pipe.feed(piece)[0] for piece in pieces]) + pipe.fail(ERROR)
    if shown.startswith(b"{"):
        return [line.decode() for line in shown.splitlines()]
    decoder = SseDecoder()
    return [event.data.decode() for event in [*decoder.feed(shown), *decoder.flush()]]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_the_error_of_a_stream_that_breaks_off_is_an_event_of_its_own(
    kind: str, line_end: bytes, size: int
) -> None:
    stream = streamed_reply(kind).replace(b"\n", line_end)

    for end in range(1, len(stream), 5):
        came = stream[:end]
        told = broken(pipe_of(kind), [came[at : at + size] for at in range(0, end, size)])

        assert ERROR.message in told[-1], (end, told)
        assert json.loads(told[-1])


@pytest.mark.parametrize("wants_usage", [True, False])
def test_no_client_is_shown_the_beginning_of_an_event_that_was_held_back(wants_usage: bool) -> None:
    whole, half = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', b'data: {"choi'

    told = broken(pipe_of("openai", wants_usage=wants_usage), [whole, half])

    assert len(told) == (3 if wants_usage else 2)
    for event in (told[0], told[-1]):
        assert json.loads(event)


def test_no_client_of_generate_is_shown_half_a_line() -> None:
    lines = [b'{"model":"m","response":"a","done":false}\n', b'{"model":"m","res']

    told = broken(generate_pipe(), lines)

    assert [json.loads(line).get("error") for line in told] == [None, ERROR.message]
