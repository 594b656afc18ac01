"""Retention of a month beside a program that reports calls: how long that one waits.

    python -m bench retention

Calls of a year are recorded as `large` does it, BENCH_CALLS of them (100,000), or those are taken
that are at the place that BENCH_DATABASE_URL or BENCH_DIR names. Then their project keeps
BENCH_KEPT_DAYS of them (303). On PostgreSQL the month is dropped, and what is left of it elsewhere
goes in steps; on SQLite all goes in steps. Meanwhile a program reports one call each 20 ms to a
real server.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
import psycopg

from bench.databases import Place, Worker, serving, wanted_places
from bench.table import Row
from tests.support.server import Served

_CALLS = 100_000
# Of the year that is there; a whole month lies before the line on any day.
_KEPT_DAYS = int(os.environ.get("BENCH_KEPT_DAYS") or 365 - 62)
_PAUSE_SECONDS, _USUAL_SECONDS = 0.02, 4.0
_PARTITIONS = (
    "SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent"
    " WHERE c.relname = 'records_call'"
)
MOST_WAIT_MS = 100.0
MOST_MONTH_SECONDS = 1.0


def rows() -> list[Row]:
    """Times of retention, and of reports meanwhile."""
    with wanted_places("sqlite postgres") as found:
        return [row for place in found for row in _measure(place)]


@dataclass(slots=True)
class _Reports:
    """How long reports took, in ms, one after the other."""

    server: Served
    taken: list[float] = field(default_factory=list)
    failed: int = 0

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Report while the block runs."""
        stopping = threading.Event()
        thread = threading.Thread(target=self._report, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def _report(self, stopping: threading.Event) -> None:
        call = {"model": "openai/gpt-4o", "usage": {"prompt_tokens": 900}, "finish_reason": "stop"}
        url = f"{self.server.base_url}/api/v1/calls"
        with httpx.Client(headers=self.server.headers, timeout=60, trust_env=False) as client:
            while not stopping.wait(_PAUSE_SECONDS):
                began = time.perf_counter()
                self.failed += client.post(url, json=call).status_code != 201
                self.taken.append((time.perf_counter() - began) * 1000)


def _measure(place: Place) -> Iterator[Row]:
    with Worker("bench.loading", place) as worker:
        worker.ask(do="prepare")
        if not (os.environ.get("BENCH_DATABASE_URL") or os.environ.get("BENCH_DIR")):
            _load(worker)
        disk = _disk_bytes(place)
        with serving(place) as server:
            usual, meanwhile = _Reports(server), _Reports(server)
            with usual.going_on():
                time.sleep(_USUAL_SECONDS)
            worker.ask(do="keep", days=_KEPT_DAYS)
            with meanwhile.going_on(), _months_seen(place) as months:
                done = worker.ask(do="retain")
        freed = (disk - _disk_bytes(place)) / 1e6
    yield from _verdicts(place, usual, meanwhile)
    is_postgres = place.database == "postgres"
    if is_postgres:
        gone = len(done["months"])
        yield Row(
            name="until the months were gone, postgres",
            figure=f"{months.gone_after:.2f} s, {gone} of them",
            against=f"their names after {done['seconds_of_months']:.1f} s, {freed:,.0f} MB freed",
            ratio=None,
            goal=f"< {MOST_MONTH_SECONDS:g} s each",
            ok=gone > 0 and months.gone_after < MOST_MONTH_SECONDS * gone,
        )
    yield Row(
        name=f"retention of {place.database}, all of it",
        figure=f"{done['seconds']:.1f} s, {done['calls']:,} calls one by one",
        against="",
        ratio=None,
        goal="",
        ok=None,
    )


def _verdicts(place: Place, usual: _Reports, meanwhile: _Reports) -> Iterator[Row]:
    most, median = max(meanwhile.taken), statistics.median(usual.taken)
    yield Row(
        name=f"the longest report meanwhile, {place.database}",
        figure=f"{most:.1f} ms of {len(meanwhile.taken):,}",
        against=f"usually {median:.1f}, at most {max(usual.taken):.1f} ms",
        ratio=None,
        goal=f"<= {MOST_WAIT_MS:g} ms more, none refused" if place.database == "sqlite" else "",
        ok=most - median <= MOST_WAIT_MS and not usual.failed + meanwhile.failed
        if place.database == "sqlite"
        else None,
    )


@dataclass(slots=True)
class _Months:
    """When the number of partitions changed last, in seconds from the beginning."""

    gone_after: float = 0.0


@contextmanager
def _months_seen(place: Place) -> Iterator[_Months]:
    """Look at the catalog while the block runs; on SQLite there are no months."""
    found, stopping = _Months(), threading.Event()

    def look() -> None:
        began = time.monotonic()
        with psycopg.connect(place.url, autocommit=True) as connection:
            there = None
            while not stopping.wait(_PAUSE_SECONDS):
                now = connection.execute(_PARTITIONS).fetchone()
                if there is not None and now != there:
                    found.gone_after = time.monotonic() - began
                there = now

    thread = threading.Thread(target=look)
    if place.database == "postgres":
        thread.start()
    try:
        yield found
    finally:
        stopping.set()
        if place.database == "postgres":
            thread.join()


def _load(worker: Worker) -> None:
    calls = int(os.environ.get("BENCH_CALLS") or _CALLS)
    now = datetime.now(UTC).isoformat()
    worker.ask(do="begin", tag="r-", calls=calls, now=now, done=0, is_first=False)
    while worker.ask(do="step")["goes_on"]:
        pass
    worker.ask(do="finish")


def _disk_bytes(place: Place) -> int:
    if place.database == "postgres":
        with psycopg.connect(place.url) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])
    with suppress(FileNotFoundError):
        return (place.data_dir / "helmdash.sqlite3").stat().st_size
    return 0
