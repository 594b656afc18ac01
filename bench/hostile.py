"""500 connections of each bad kind: the server's memory, and what a good client waits meanwhile.

    python -m bench hostile

The good client sends chat completions through the gateway, four at a time, before and during each
kind, in turns. Whoever is turned away comes back one to three seconds later.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.gateways import OWN, Ground, ground
from bench.table import Row
from bench.turns import Case, resident_mib, take_turn

_CONNECTIONS = 500
_SECONDS = 4.0
_ROUNDS = 3
_CASE = Case(4)
_MOST_MIB = 50.0
# "Within twice its usual", of what this machine measures of the same load twice in a row.
_MOST_RATIO = 2.0
_PIECE = b"a" * 65536

_HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
_WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
# What is sent at once, and what is sent again and again after that, with seconds between.
_KINDS: dict[str, list[tuple[bytes, bytes, float]]] = {
    "silent": [(b"", b"", 1.0)],
    "slow headers": [(b"GET /" + _HOST, b"X: a\r\n", 0.5)],
    "endless headers": [
        (b"GET /" + _HOST + b"X: ", _PIECE, 0.0),
        (b"GET /" + _HOST, b"X-Many: a\r\n" * 5000, 0.0),
        (b"POST /login/" + _HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", _PIECE, 0.0),
    ],
    "unfinished bodies": [
        (b"POST " + target + _HOST + b"Content-Length: 60000\r\n\r\n" + b"a" * 50_000, b"a", 1.0)
        for target in (b"/login/", b"/api/v1/calls", b"/v1/chat/completions", b"/", b"/mcp")
    ],
    "upgrades": [
        (b"GET /" + _HOST + _WEBSOCKET + b"\r\n", b"", 1.0),
        (b"POST /v1/responses" + _HOST + _WEBSOCKET + b"Content-Length: 9\r\n\r\n", b"", 1.0),
        (b"GET /healthz" + _HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", b"", 1.0),
    ],
}


def rows() -> list[Row]:
    """For each kind: how much memory it took at most, and the good client's p99 beside it."""
    with ground() as found:
        _p99(found, _SECONDS)  # what is made at the first requests is made
        before = resident_mib(found.server.process.pid)
        measured = [_measure(found, kind, before) for kind in _KINDS]
        after = resident_mib(found.server.process.pid)
    rows = [row for each in measured for row in each]
    rows.append(
        Row(
            name="hostile, memory after all kinds",
            figure=f"{after:.0f} MiB",
            against=f"{before:.0f} MiB",
            ratio=after / before,
            goal=f"+{_MOST_MIB:.0f} MiB",
            ok=after - before <= _MOST_MIB,
        )
    )
    return rows


def _measure(found: Ground, kind: str, before: float) -> list[Row]:
    usual, meanwhile, most = [], [], 0.0
    for _ in range(_ROUNDS):
        usual.append(_p99(found, _SECONDS))
        with _attacked(found.server.port, kind):
            meanwhile.append(_p99(found, _SECONDS))
            most = max(most, resident_mib(found.server.process.pid))
        print(
            f"  {kind}: {usual[-1]:.1f}, then {meanwhile[-1]:.1f} ms", file=sys.stderr, flush=True
        )
    first, second = statistics.median(usual), statistics.median(meanwhile)
    return [
        Row(
            name=f"{_CONNECTIONS} x {kind}, a good client's p99",
            figure=f"{second:.1f} ms",
            against=f"{first:.1f} ms before",
            ratio=second / first,
            goal=f"{_MOST_RATIO:.1f} x",
            ok=second <= _MOST_RATIO * first,
        ),
        Row(
            name=f"{_CONNECTIONS} x {kind}, memory meanwhile",
            figure=f"{most:.0f} MiB",
            against=f"{before:.0f} MiB before",
            ratio=most / before,
            goal=f"+{_MOST_MIB:.0f} MiB",
            ok=most - before <= _MOST_MIB,
        ),
    ]


def _p99(found: Ground, seconds: float) -> float:
    return take_turn(found.load, found.target(OWN), _CASE, seconds=seconds).p99_ms


@contextmanager
def _attacked(port: int, kind: str) -> Iterator[None]:
    """The connections are open, and kept so, for the length of the block."""
    stop = threading.Event()
    is_open = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_attack(port, kind, stop, is_open)))
    thread.start()
    is_open.wait(10)
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def _attack(port: int, kind: str, stop: threading.Event, is_open: threading.Event) -> None:
    scripts = _KINDS[kind]
    tasks = [
        asyncio.create_task(_bother(port, *scripts[number % len(scripts)]))
        for number in range(_CONNECTIONS)
    ]
    await asyncio.sleep(1.0)
    is_open.set()
    while not stop.is_set():
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _bother(port: int, first: bytes, again: bytes, pause_s: float) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            ended = asyncio.create_task(reader.read(-1))
            try:
                writer.write(first)
                while not ended.done():
                    writer.write(again)
                    await writer.drain()
                    await asyncio.wait({ended}, timeout=pause_s)
            finally:
                ended.cancel()
                writer.transport.abort()
        await asyncio.sleep(random.uniform(1.0, 3.0))
