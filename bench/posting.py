"""A client that reports calls as fast as they are answered, and costs little itself.

Run as a worker process (bench.databases.Worker): one JSON command a line on stdin, one answer.
Each of `clients` kept-alive connections sends its next report when the last one is answered.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

from bench.payloads import grown_calls

# An answer that takes longer counts as an error and ends the run.
_PATIENCE_SECONDS = 60
_LENGTH = b"content-length:"


@dataclass(slots=True, kw_only=True)
class _Run:
    """What the connections of one run share."""

    requests: Iterator[bytes]
    calls_each: int
    deadline: float = 0.0
    taken: array[float] = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    last: float = 0.0

    def next_request(self) -> bytes | None:
        """The next request; None when the run is over."""
        if time.perf_counter() >= self.deadline:
            return None
        return next(self.requests, None)


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run, done: asyncio.Future[None]) -> None:
        self._run = run
        self._done = done
        self._seen = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._run.errors["connection lost"] += 1
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._seen = seen = self._seen + data if self._seen else data
        end = seen.find(b"\r\n\r\n")
        if end < 0 or len(seen) < end + 4 + _length(seen[:end].lower()):
            return
        run = self._run
        run.last = time.perf_counter()
        run.taken.append(run.last - self._sent)
        if not seen.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")) or b'"rejected":[{' in seen:
            run.errors[seen[:12].decode() + seen[end:][:200].decode(errors="replace")] += 1
        self._send()

    def _send(self) -> None:
        request = self._run.next_request()
        if request is None:
            self._done.set_result(None)
            self._transport.close()
            return
        self._seen = b""
        self._sent = time.perf_counter()
        self._transport.write(request)


def _length(head: bytes) -> int:
    at = head.index(_LENGTH) + len(_LENGTH)
    return int(head[at:].split(b"\r\n", 1)[0])


async def _measure(command: dict[str, Any]) -> dict[str, Any]:
    url = urlsplit(command["url"])
    loop = asyncio.get_running_loop()
    size, most = command["calls_each"], command["most"]
    bodies = _bodies(command["run"], most * size, size, command["bytes"])
    head = partial(_head, url.netloc, url.path, command.get("headers") or {})
    # Made before the clock runs: it is the server that is measured.
    made = [head(len(body)) + body for body in bodies]
    run = _Run(requests=iter(made), calls_each=size)
    done: list[asyncio.Future[None]] = []
    began = time.perf_counter()
    run.deadline = began + command["seconds"]
    for _ in range(command["clients"]):
        done.append(loop.create_future())
        await loop.create_connection(partial(_Connection, run, done[-1]), url.hostname, url.port)
    async with asyncio.timeout(command["seconds"] + _PATIENCE_SECONDS):
        await asyncio.gather(*done)
    return {
        "calls": len(run.taken) * size,
        "seconds": max(run.last, began) - began,
        "p50_ms": statistics.median(run.taken) * 1000 if run.taken else None,
        "errors": dict(run.errors.most_common(3)),
    }


def _bodies(run: str, count: int, each: int, size: int) -> list[bytes]:
    """Bodies of single reports (`each` 1) or of batches."""
    calls = [json.dumps(call, separators=(",", ":")) for call in grown_calls(count, run, size)]
    if each == 1:
        return [call.encode() for call in calls]
    return [
        f'{{"calls":[{",".join(calls[start : start + each])}]}}'.encode()
        for start in range(0, count, each)
    ]


def _head(host: str, path: str, headers: dict[str, str], length: int) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def main() -> None:
    """Answer commands until stdin ends."""
    random.seed(0)
    for line in sys.stdin:
        gc.disable()  # nothing here makes cycles worth a pause
        print(json.dumps(uvloop.run(_measure(json.loads(line)))), flush=True)
        gc.enable()


if __name__ == "__main__":
    main()
