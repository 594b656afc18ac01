"""A client that asks for chat completions as fast as they come, and costs little itself.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer.
Each of `concurrency` kept-alive connections sends its next request when the last reply is whole.
Every reply is checked: its status, its length, and a stream's number of events and its end.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import statistics
import sys
import time
from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

# The stub's reply is 1,500 bytes; a gateway that writes it anew may leave nulls out.
_LEAST_BYTES = 1_200
_LEAST_EVENTS = 49
# A reply that takes longer counts as an error and ends the run.
_PATIENCE_SECONDS = 20
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HOLE = b"0000000000"
_HISTORY = "A turn of a history that is sent again with each request, as agents do. "
_TURNS = 10
_TURN_BYTES = len('{"role": "assistant", "content": ""}, ')


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the connections of one run share."""

    head: bytes
    body: bytes
    is_stream: bool
    most: int
    """Replies to ask for; the deadline may come first."""
    deadline: float = 0.0
    asked: int = 0
    first: array[float] = field(default_factory=lambda: array("d"))
    whole: array[float] = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    last: float = 0.0

    def next_request(self) -> bytes | None:
        """The next request, or None when the run is over. Each asks something else."""
        if self.asked >= self.most or time.perf_counter() >= self.deadline:
            return None
        self.asked += 1
        return self.head + self.body.replace(_HOLE, b"%010d" % (_serial_from + self.asked))


# Each run goes on counting where the one before has stopped.
_serial_from = 0


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run, done: asyncio.Future[None]) -> None:
        self._run = run
        self._done = done
        self._seen = b""
        self._body_at = -1
        self._ends_at = -1
        self._is_first_seen = False
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._run.errors["connection lost"] += 1
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._seen = seen = self._seen + data if self._seen else data
        if self._body_at < 0 and not self._read_head(seen):
            return
        if not self._is_first_seen and len(seen) > self._body_at:
            self._is_first_seen = True
            self._run.first.append(time.perf_counter() - self._sent)
        if self._ends_at < 0:
            if seen.endswith(b"\r\n0\r\n\r\n"):
                self._finish(seen)
        elif len(seen) >= self._ends_at:
            self._finish(seen)

    def _ask(self) -> None:
        request = self._run.next_request()
        if request is None:
            self._done.set_result(None)
            self._transport.close()
            return
        self._seen = b""
        self._body_at = self._ends_at = -1
        self._is_first_seen = False
        self._sent = time.perf_counter()
        self._transport.write(request)

    def _read_head(self, seen: bytes) -> bool:
        end = seen.find(b"\r\n\r\n")
        if end < 0:
            return False
        self._body_at = end + 4
        length = _LENGTH.search(seen, 0, end)
        self._ends_at = self._body_at + int(length[1]) if length else -1
        return True

    def _finish(self, seen: bytes) -> None:
        now = time.perf_counter()
        run = self._run
        run.whole.append(now - self._sent)
        run.last = now
        problem = _problem(seen, self._body_at, run.is_stream)
        if problem:
            run.errors[problem] += 1
        self._ask()


def _problem(seen: bytes, body_at: int, is_stream: bool) -> str:
    """What is wrong with a reply, or nothing."""
    if not seen.startswith(b"HTTP/1.1 200"):
        return seen[:12].decode(errors="replace") + seen[body_at : body_at + 300].decode(
            errors="replace"
        )
    if is_stream:
        if b"data: [DONE]" not in seen[-40:]:
            return "a stream without its end"
        if seen.count(b"data: ", body_at) < _LEAST_EVENTS:
            return "a stream with events missing"
    elif len(seen) - body_at < _LEAST_BYTES:
        return "a reply that is too short"
    return ""


async def _measure(command: dict[str, Any]) -> dict[str, Any]:
    global _serial_from
    url = urlsplit(command["url"])
    loop = asyncio.get_running_loop()
    run = _Run(
        head=b"",
        body=request_body(command["model"], command["stream"], command.get("bytes")),
        is_stream=command["stream"],
        most=command.get("count") or sys.maxsize,
    )
    run.head = _head(url.netloc, url.path, command.get("headers") or {}, len(run.body))
    done: list[asyncio.Future[None]] = []
    began = time.perf_counter()
    run.deadline = began + command["seconds"]
    for _ in range(command["concurrency"]):
        future = loop.create_future()
        done.append(future)
        await loop.create_connection(partial(_Connection, run, future), url.hostname, url.port)
    try:
        async with asyncio.timeout(command["seconds"] + _PATIENCE_SECONDS):
            await asyncio.gather(*done)
    except TimeoutError:
        run.errors["no reply in time"] += 1
    _serial_from += run.asked
    return {
        "count": len(run.whole),
        "seconds": max(run.last, began) - began,
        "whole_ms": _spread(run.whole),
        "first_ms": _spread(run.first),
        "errors": dict(run.errors.most_common(5)),
    }


def _spread(seconds: array[float]) -> dict[str, float] | None:
    """Percentiles in milliseconds, None of nothing."""
    if not seconds:
        return None
    # One value alone has no quantiles.
    cuts = statistics.quantiles(
        seconds if len(seconds) > 1 else [*seconds] * 2, n=100, method="inclusive"
    )
    return {f"p{n}": cuts[n - 1] * 1000 for n in (50, 95, 99)}


def _head(host: str, path: str, headers: dict[str, str], length: int) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def request_body(model: str, is_stream: bool, size: int | None = None) -> bytes:
    """A question with a hole for its number: no two of a bench are the same conversation.

    size: bytes that a history of messages fills; None: there is none, and it is 0.9 kB.
    """
    question = f"Question {_HOLE.decode()}: what should be measured in front of a gateway, and why?"
    system = {"role": "system", "content": "You answer in short and plain sentences. " * 5}
    first = {"role": "user", "content": question + " Say how you would find out." * 8}
    request: dict[str, object] = {
        "model": model,
        "messages": [system, first],
        "temperature": 0.2,
        "max_tokens": 400,
    }
    if is_stream:
        request["stream"] = True
    body = json.dumps(request).encode()
    if size is None:
        return body
    each = (size - len(body)) // _TURNS - _TURN_BYTES
    words = (_HISTORY * (each // len(_HISTORY) + 1))[:each]
    history = [
        {"role": "assistant" if number % 2 else "user", "content": words}
        for number in range(_TURNS)
    ]
    return json.dumps({**request, "messages": [system, *history, first]}).encode()


def main() -> None:
    """Answer commands until stdin ends."""
    gc.disable()  # nothing here makes cycles worth a pause
    for line in sys.stdin:
        print(json.dumps(uvloop.run(_measure(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
