"""Recording through the API of a real server, against the same rows stored by Django alone.

`POST /calls/batch` with 512 calls of 4.7 kB, on SQLite and PostgreSQL; the server, bulk_create and
the bare driver take turns within one run, because other work on the machine changes all of them.
What the server does besides: parse and check, authenticate, judge, place, answer.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from bench.databases import Place, Worker, places, serving, tree_cpu_seconds
from bench.payloads import BATCH_CALLS, batches, calls
from bench.table import Row
from tests.support.server import Served

ROUNDS = 5
_BATCHES_PER_ROUND = 2
_ROUND_CALLS = BATCH_CALLS * _BATCHES_PER_ROUND
WRITERS = 20
_SINGLE_CALLS = 600

# What batches must reach of Django's bulk_create of the same rows, and what they may cost.
LEAST_SHARE_OF_BULK_CREATE = 0.25
MOST_CPU_SECONDS_PER_10_000 = 3.0


def rows() -> list[Row]:
    """Calls stored per second and their CPU, on each database."""
    with places() as found:
        return [row for place in found for row in _measure(place)]


def _measure(place: Place) -> list[Row]:
    with serving(place) as server, Worker("bench.inserts", place) as worker:
        worker.ask(do="payload", keep="full")
        _send(server, "warm", 64)
        full = _take_turns(server, worker, "full")
        worker.ask(do="payload", keep="off")
        off = [_send(server, f"off{n}", _ROUND_CALLS) for n in range(ROUNDS)]
        worker.ask(do="payload", keep="full")
        single = _singles(server)
    return _rows(place.database, full, off, single)


def _take_turns(server: Served, worker: Worker, run: str) -> dict[str, list[Any]]:
    taken: dict[str, list[Any]] = {"server": [], "bulk_create": [], "raw": []}
    for number in range(ROUNDS):
        taken["server"].append(_send(server, f"{run}{number}", _ROUND_CALLS))
        for how in ("bulk_create", "raw"):
            seconds = [
                worker.ask(do=how, calls=BATCH_CALLS, run=f"{run}{number}-{how}{batch}")
                for batch in range(_BATCHES_PER_ROUND)
            ]
            taken[how].append(_ROUND_CALLS / sum(seconds))
    return taken


def _send(server: Served, run: str, count: int) -> tuple[float, float]:
    """Send batches one after the other; gives calls per second and CPU seconds per 10,000, of the
    server and of what it has started."""
    bodies = batches(list(calls(count=count, run=run)))
    with _client(server) as api:
        api.get("/budgets", params={"limit": 1})  # the connection is open before the clock runs
        cpu, began = tree_cpu_seconds(server.process.pid), time.perf_counter()
        for body in bodies:
            response = api.post("/calls/batch", content=body)
            if response.status_code != 200 or response.json()["rejected"]:
                raise RuntimeError(response.text[:500])
        seconds = time.perf_counter() - began
        used = tree_cpu_seconds(server.process.pid) - cpu
    return count / seconds, used / count * 10_000


def _singles(server: Served) -> float:
    """Calls per second of 20 clients that each send one call at a time."""
    given = [json.dumps(call).encode() for call in calls(count=_SINGLE_CALLS, run="single")]

    def write(share: Sequence[bytes]) -> None:
        with _client(server) as api:
            for body in share:
                api.post("/calls", content=body).raise_for_status()

    with ThreadPoolExecutor(WRITERS) as pool:
        began = time.perf_counter()
        list(pool.map(write, [given[start::WRITERS] for start in range(WRITERS)]))
        return _SINGLE_CALLS / (time.perf_counter() - began)


def _client(server: Served) -> httpx.Client:
    return httpx.Client(
        base_url=f"{server.base_url}/api/v1",
        headers={**server.headers, "Content-Type": "application/json"},
        timeout=120,
        trust_env=False,
    )


def _rows(
    database: str,
    full: dict[str, list[Any]],
    off: list[tuple[float, float]],
    single: float,
) -> list[Row]:
    speed = _median(full["server"], lambda pair: pair[0])
    cpu = _median(full["server"], lambda pair: pair[1])
    bulk = statistics.median(full["bulk_create"])
    raw = statistics.median(full["raw"])
    raw_name = "COPY" if database == "postgres" else "executemany"
    # Of the rounds, not of the medians: both halves of a round met the same neighbours.
    share = statistics.median(
        server[0] / other for server, other in zip(full["server"], full["bulk_create"], strict=True)
    )
    off_speed, off_cpu = _median(off, lambda pair: pair[0]), _median(off, lambda pair: pair[1])
    return [
        Row(
            name=f"record, batches of {BATCH_CALLS}, texts kept, {database}",
            figure=f"{speed:,.0f} calls/s",
            against=f"bulk_create {bulk:,.0f}",
            ratio=share,
            goal=f">= {LEAST_SHARE_OF_BULK_CREATE}",
            ok=share >= LEAST_SHARE_OF_BULK_CREATE,
        ),
        Row(
            name="  against bare inserts",
            figure=f"{speed:,.0f} calls/s",
            against=f"{raw_name} {raw:,.0f}",
            ratio=speed / raw,
            goal="",
            ok=None,
        ),
        Row(
            name="  CPU for 10,000, all our processes",
            figure=f"{cpu:.2f} s",
            against="",
            ratio=None,
            goal=f"<= {MOST_CPU_SECONDS_PER_10_000:g} s",
            ok=cpu <= MOST_CPU_SECONDS_PER_10_000,
        ),
        Row(
            name="  no texts kept",
            figure=f"{off_speed:,.0f} calls/s, {off_cpu:.2f} s",
            against="",
            ratio=None,
            goal="",
            ok=None,
        ),
        Row(
            name=f"  {WRITERS} clients, single calls",
            figure=f"{single:,.0f} calls/s",
            against="",
            ratio=None,
            goal="",
            ok=None,
        ),
    ]


def _median(values: Sequence[Any], of: Callable[[Any], float]) -> float:
    return statistics.median(map(of, values))
