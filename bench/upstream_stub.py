"""An OpenAI-shaped upstream that costs next to nothing: what gateways are measured in front of.

    python -m bench.upstream_stub PORT

A plain reply is 1.5 kB of JSON with usage; a stream is 50 chunks, each written by itself, and a
chunk with usage when `include_usage` is asked for. Model `mock-slow` answers after 20 ms, any other
at once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections.abc import Iterator
from typing import cast

import uvloop

SLOW_SECONDS = 0.020
CHUNKS = 50
PLAIN_BYTES = 1_500
FAST, SLOW = "mock-fast", "mock-slow"

# As long as an id, so that a reply's length is the same for all.
_ID_HOLE = b"chatcmpl-000000000000"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAM = re.compile(rb'"stream" *: *true')
_USAGE = re.compile(rb'"include_usage" *: *true')
_USED = {"prompt_tokens": 160, "completion_tokens": 240, "total_tokens": 400}
_WORDS = ("the gateway passes this answer on and records what it has seen of it " * 30).split()


def _plain() -> bytes:
    body = json.dumps(_completion(" ".join(_WORDS)))
    # The answer is cut so that the whole is PLAIN_BYTES long.
    surplus = len(body) - PLAIN_BYTES
    return json.dumps(_completion(" ".join(_WORDS)[:-surplus])).encode()


def _completion(text: str) -> dict[str, object]:
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": _ID_HOLE.decode(),
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": FAST,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": _USED,
        "system_fingerprint": "fp_bench",
    }


def _chunks() -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": ""}, None)
    for word in _WORDS[: CHUNKS - 2]:
        yield _chunk({"content": word + " "}, None)
    yield _chunk({}, "stop")


def _chunk(delta: dict[str, str], finish: str | None) -> bytes:
    return _event([{"index": 0, "delta": delta, "finish_reason": finish}], None)


def _event(choices: list[object], usage: object) -> bytes:
    event = {
        "id": _ID_HOLE.decode(),
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": FAST,
        "choices": choices,
        "usage": usage,
    }
    return _framed(b"data: " + json.dumps(event).encode() + b"\n\n")


def _framed(data: bytes) -> bytes:
    """As one chunk of HTTP's chunked encoding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _reply(body: bytes, kind: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


_PLAIN = _reply(_plain())
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_EVENTS = list(_chunks())
_LAST = _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_USAGE_EVENT = _event([], _USED)
_MODELS = _reply(
    json.dumps({"object": "list", "data": [{"id": m, "object": "model"} for m in (FAST, SLOW)]})
    .encode()
)  # fmt: skip
_serial = itertools.count(1)


class _Pieces:
    """A stream with a hole for the id: where each write begins and ends."""

    def __init__(self, writes: list[bytes]) -> None:
        self.whole = b"".join(writes)
        self.ends = list(itertools.accumulate(len(write) for write in writes))


# The head goes with the first event, the end with the last write.
_BARE = _Pieces([_STREAM_HEAD + _EVENTS[0], *_EVENTS[1:], _LAST])
_COUNTED = _Pieces([_STREAM_HEAD + _EVENTS[0], *_EVENTS[1:], _USAGE_EVENT, _LAST])


class _Connection(asyncio.Protocol):
    """One client, which waits for a reply before it sends the next request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pieces: list[bytes] = []
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Put together once: 8 MB come in a hundred pieces, and to put each of them behind all
        before it took 30 ms, in which no other request was answered."""
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        seen = b"".join(self._pieces)
        self._missing = _missing(seen)
        if self._missing > 0:
            self._pieces = [seen]
        else:
            self._pieces = []
            self._answer(seen)

    def _answer(self, request: bytes) -> None:
        if request.startswith(b"GET"):
            self._transport.write(_MODELS)
        elif b'"mock-slow"' in request:
            self._loop.call_later(SLOW_SECONDS, self._generate, request)
        else:
            self._generate(request)

    def _generate(self, request: bytes) -> None:
        own_id = b"chatcmpl-%012d" % next(_serial)
        if _STREAM.search(request):
            pieces = _COUNTED if _USAGE.search(request) else _BARE
            whole = pieces.whole.replace(_ID_HOLE, own_id)
            self._write_next(whole, iter(pieces.ends), 0)
        else:
            self._transport.write(_PLAIN.replace(_ID_HOLE, own_id))

    def _write_next(self, whole: bytes, ends: Iterator[int], begin: int) -> None:
        """One write in each turn of the loop; uvloop would join those of one turn."""
        if self._transport.is_closing():
            return
        end = next(ends, None)
        if end is not None:
            self._transport.write(whole[begin:end])
            self._loop.call_soon(self._write_next, whole, ends, end)


def _missing(seen: bytes) -> int:
    """How many bytes of a request are still to come, at least."""
    end = seen.find(b"\r\n\r\n")
    if end < 0:
        return 1
    length = _LENGTH.search(seen, 0, end)
    if length:
        return max(end + 4 + int(length[1]) - len(seen), 0)
    if b"chunked" in seen[:end].lower():
        return int(not seen.endswith(b"0\r\n\r\n"))
    return 0


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(loop), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
