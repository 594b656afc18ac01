"""What to plan for: disk for a million calls, CPU for a thousand calls a minute, memory.

    python -m bench sizing

Calls of 4.7 kB, of which 1.1 kB (a system message) are common to all, are sent to a real server,
one by one and in batches, with texts kept and not. CPU is of the server's processes, and
on PostgreSQL of all of its own besides. Disk is what the database grew by, indexes included.
BENCH_CALLS sets another number of calls than 20,000. Not part of a plain `make bench`: it takes
some minutes.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from bench.databases import Place, Worker, cpu_seconds, places, serving
from bench.payloads import batches, calls
from bench.table import Row
from bench.turns import resident_mib
from tests.support.server import Served

_CALLS = 20_000
_SINGLES = 400
_BATCH = 100
_WARM = 64
# Fields of /proc/PID/stat from behind the name: its parent, and the time of its ended children.
_PARENT, _ENDED_UTIME, _ENDED_STIME = 1, 13, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """Of one call: CPU in ms, of the server and of PostgreSQL; bytes of disk."""

    server_ms: float
    database_ms: float
    disk_bytes: float


def rows() -> list[Row]:
    """Figures for each database, with texts and without."""
    count = int(os.environ.get("BENCH_CALLS") or _CALLS)
    with places() as found:
        return [row for place in found for row in _measure(place, count)]


def _measure(place: Place, count: int) -> Iterator[Row]:
    with serving(place) as server, Worker("bench.inserts", place) as worker:
        pid = server.process.pid
        idle = resident_mib(pid)
        for keep, words in (("off", "no texts"), ("full", "texts kept")):
            worker.ask(do="payload", keep=keep)
            _send(server, f"warm-{keep}", _WARM, most=_WARM)
            where = f"{place.database}, {words}"
            batched = _cost(place, server, f"many-{keep}", count, most=_BATCH)
            single = _cost(place, server, f"one-{keep}", _SINGLES, most=1)
            yield _row(f"disk of a million calls, {where}", f"{batched.disk_bytes / 1e3:.2f} GB")
            for name, cost in (("one by one", single), ("in batches", batched)):
                yield _row(f"CPU of 1,000 calls a minute {name}, {where}", _cores(cost))
        most = resident_mib(pid, peak=True)
        yield _row(f"memory, {place.database}", f"{idle:.0f} MiB idle, {most:.0f} MiB at most")


def _row(name: str, figure: str) -> Row:
    return Row(name=name, figure=figure, against="", ratio=None, goal="", ok=None)


def _cores(cost: _Cost) -> str:
    """CPU seconds in the second, as a share of a core."""
    share = 1000 / 60 / 1000 * 100
    database = f" + {cost.database_ms * share:.1f} %" if cost.database_ms else ""
    return f"{cost.server_ms * share:.1f} %{database} of a core"


def _cost(place: Place, server: Served, run: str, count: int, *, most: int) -> _Cost:
    pid = server.process.pid
    disk, own, database = _disk_bytes(place), _family_seconds(pid), _postgres_seconds(place)
    _send(server, run, count, most=most)
    return _Cost(
        server_ms=(_family_seconds(pid) - own) / count * 1000,
        database_ms=(_postgres_seconds(place) - database) / count * 1000,
        disk_bytes=(_disk_bytes(place) - disk) / count,
    )


def _send(server: Served, run: str, count: int, *, most: int) -> None:
    """Report calls, `most` in a request, one request after the other."""
    path = "/calls" if most == 1 else "/calls/batch"
    with httpx.Client(
        base_url=f"{server.base_url}/api/v1",
        headers={**server.headers, "Content-Type": "application/json"},
        timeout=120,
        trust_env=False,
    ) as api:
        made = list(calls(count=count, run=run))
        for body in map(json.dumps, made) if most == 1 else batches(made, most):
            response = api.post(path, content=body)
            if response.status_code not in (200, 201):
                raise RuntimeError(response.text[:500])


def _disk_bytes(place: Place) -> int:
    """What the database takes, its log left aside: that has a size of its own."""
    if place.url:
        with psycopg.connect(place.url) as handle:
            found = handle.execute("SELECT pg_database_size(current_database())").fetchone()
            return int(found[0]) if found else 0
    with closing(sqlite3.connect(place.data_dir / "helmdash.sqlite3")) as file:
        (pages,) = file.execute("PRAGMA page_count").fetchone()
        (size,) = file.execute("PRAGMA page_size").fetchone()
        return int(pages) * int(size)


def _postgres_seconds(place: Place) -> float:
    """CPU of all processes of the PostgreSQL server."""
    if not place.url:
        return 0.0
    with psycopg.connect(place.url) as handle:
        (backend,) = handle.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        return _family_seconds(int(_stat(backend)[_PARENT]))


def _family_seconds(pid: int) -> float:
    """CPU of a process and its children, those that have ended included."""
    children = [each for each in _processes() if int(_stat(each)[_PARENT]) == pid]
    ended = _stat(pid)
    ticks = int(ended[_ENDED_UTIME]) + int(ended[_ENDED_STIME])
    return sum(map(cpu_seconds, [pid, *children])) + ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[int]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            yield int(path.name)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # ended meanwhile
        return ["Z", "-1", *["0"] * 20]
