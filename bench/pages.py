"""Pages and API lists over many calls: 1,000,000 on PostgreSQL, 200,000 on SQLite.

BENCH_CALLS sets another number for both. BENCH_DATABASE_URL names a PostgreSQL database that is
kept: it is filled the first time, and only measured after that.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.databases import Place, Worker, places
from bench.table import Row

# Server time at the median, on PostgreSQL: what people call at once.
GOAL_MS = 200
_CALLS = {"postgres": 1_000_000, "sqlite": 200_000}


def rows() -> list[Row]:
    """Milliseconds and queries of each page, and of each API list."""
    kept = os.environ.get("BENCH_DATABASE_URL")
    if kept:
        with tempfile.TemporaryDirectory(prefix="helmdash-bench-") as parent:
            place = Place(database="postgres", url=kept, data_dir=Path(parent))
            return list(_measure(place))
    with places() as found:
        return [row for place in found for row in _measure(place)]


def _measure(place: Place) -> Iterator[Row]:
    count = int(os.environ.get("BENCH_CALLS") or _CALLS[place.database])
    with Worker("bench.reading", place) as worker:
        print(f"Filling {place.database} with {count:,} calls ...", file=sys.stderr)
        seconds = worker.ask(do="prepare", calls=count)["seconds"]
        measured = worker.ask(do="measure")
    yield Row(
        name=f"generate {count:,} calls, {place.database}",
        figure=f"{seconds:,.0f} s",
        against="",
        ratio=None,
        goal="",
        ok=None,
    )
    for item in measured:
        yield _row(item, place.database)


def _row(item: dict[str, Any], database: str) -> Row:
    row = Row(
        name=f"{item['kind']} {item['name']}, {database}",
        figure=f"{item['ms']:.0f} ms, {item['queries']} queries",
        against="",
        ratio=None,
        goal="",
        ok=None,
    )
    if database != "postgres":
        return row
    return replace(row, goal=f"< {GOAL_MS} ms", ok=item["ms"] < GOAL_MS)
