"""Every list and page at N/10 and at N calls of a year: whether they stay as quick.

    make bench ARGS=large

BENCH_CALLS is N (10,000,000; on SQLite 1,000,000), BENCH_DATABASES which databases (postgres).
BENCH_DATABASE_URL, or BENCH_DIR for SQLite, names a place that is kept: the load goes on there
where it broke off, and a full one is only measured. Texts are kept of 1 % of the calls, and one
conversation has 10,000. The first tenth is spread over the whole year as the rest is, and copied
before the rest comes: each address is asked of both in turns, since machines are quicker in one
hour than in the next.

Times are the least of some requests, for whatever else the machine does only adds to them: on
PostgreSQL as they pass, on SQLite, which works in the same process, of CPU.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Self

from bench.databases import Place, Worker, wanted_places
from bench.table import Row

_CALLS = {"postgres": 10_000_000, "sqlite": 1_000_000}
# PostgreSQL takes what two processes bring; SQLite has one writer.
_PARTS = {"postgres": 2, "sqlite": 1}
_NOTES = "large.json"
_TENTH, _WHOLE = "tenth", "whole"
# Of each address on each place, after one that warms up.
_TURNS = 7

MOST_GROWTH = 1.2
MOST_LOAD_MINUTES = 40
# Of a request, in ms: for whom there is a goal of its own.
_OWN_MS = {"overview": 100.0, "models": 100.0, "one conversation, the longest": 200.0}
_SQLITE_MS = 300.0
# A request of a fraction of a millisecond differs by more than a fifth from itself.
_LEAST_MS = 2.0


@dataclass(slots=True)
class _Load:
    """What is to be loaded and how far it is; written beside the data after each step."""

    now: str
    calls: int
    done: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def rows() -> list[Row]:
    """Load what is missing, and measure at a tenth and at the whole."""
    found = []
    with wanted_places() as all_places:
        for place in all_places:
            found += list(_measure(place))
    return found


def _measure(place: Place) -> Iterator[Row]:
    count = int(os.environ.get("BENCH_CALLS") or _CALLS[place.database])
    load = _read(place, count)
    tenth = place.copied(_TENTH)
    if tenth is None and not _is_begun(load, _WHOLE):
        _fill(place, load, share=_TENTH, calls=count // 10)
        tenth = place.copy(_TENTH)
    _fill(place, load, share=_WHOLE, calls=count)
    yield _load_row(place, load)
    *tenths, whole = _times([*([tenth] if tenth else []), place])
    for name, ms in whole.items():
        yield verdict(name, place, ms, tenths[0].get(name) if tenths else None)


def _fill(place: Place, load: _Load, *, share: str, calls: int) -> None:
    """Have so many calls there, each worker its part of what the share before left to do."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker("bench.loading", place))
            for _ in range(_PARTS[place.database])
        ]
        workers[0].ask(do="prepare")
        before = load.calls // 10 if share == _WHOLE else 0
        counts = [(calls - before) // len(workers)] * len(workers)
        counts[0] += calls - before - sum(counts)
        tags = [f"{share[0]}{number}-" for number in range(len(workers))]
        if all(load.done.get(tag, 0) >= most for tag, most in zip(tags, counts, strict=True)):
            return
        began, already = time.monotonic(), load.seconds

        def part(worker: Worker, tag: str, most: int) -> None:
            worker.ask(
                do="begin", tag=tag, calls=most, now=load.now, done=load.done.get(tag, 0),
                is_first=tag == "t0-",
            )  # fmt: skip
            goes_on = True
            while goes_on:
                step = worker.ask(do="step")
                goes_on = step["goes_on"]
                load.done[tag] = max(step["done"], load.done.get(tag, 0))
                load.seconds = already + time.monotonic() - began
                _show(load)
                _write(place, load)

        with ThreadPoolExecutor(len(workers)) as threads:
            list(threads.map(part, workers, tags, counts))
        workers[0].ask(do="finish")


def _is_begun(load: _Load, share: str) -> bool:
    """Whether calls of the share are there."""
    return any(tag.startswith(share[0]) and done for tag, done in load.done.items())


@dataclass(slots=True)
class _Reader:
    """Who asks one place, and what it has found."""

    place: Place
    worker: Worker
    numbers: dict[str, int]
    """Of the addresses there, by kind and name."""
    least_ms: dict[str, float]

    @classmethod
    def of(cls, place: Place, worker: Worker) -> Self:
        names = worker.ask(do="open_large")
        return cls(place, worker, {name: at for at, name in enumerate(names)}, {})

    def ask(self, name: str) -> None:
        """One request, where the place has such an address."""
        if name not in self.numbers:
            return
        taken = self.worker.ask(do="read", number=self.numbers[name])
        ms = taken["cpu_ms" if self.place.database == "sqlite" else "ms"]
        self.least_ms[name] = min(ms, self.least_ms.get(name, ms))


def _times(places: Sequence[Place]) -> list[dict[str, float]]:
    """The least time of each address in milliseconds, of each place, asked of all in turns."""
    with ExitStack() as stack:
        readers = [
            _Reader.of(place, stack.enter_context(Worker("bench.reading", place)))
            for place in places
        ]
        for name in dict.fromkeys(name for reader in readers for name in reader.numbers):
            for _ in range(_TURNS):
                for reader in readers:
                    reader.ask(name)
    return [reader.least_ms for reader in readers]


def _read(place: Place, count: int) -> _Load:
    """The notes of a load of so many calls that broke off; else a new one."""
    try:
        load = _Load(**json.loads((place.data_dir / _NOTES).read_text()))
    except FileNotFoundError:
        return _Load(now=datetime.now(UTC).isoformat(), calls=count)
    if load.calls != count:
        raise SystemExit(f"{place.data_dir} holds a load of {load.calls:,} calls: BENCH_CALLS")
    return load


def _write(place: Place, load: _Load) -> None:
    (place.data_dir / _NOTES).write_text(json.dumps(asdict(load)))


def _show(load: _Load) -> None:
    """One line that changes: how far it is, and when it will be done."""
    done = sum(load.done.values())
    rate = done / load.seconds if load.seconds else 0.0
    left = (load.calls - done) / rate / 60 if rate else 0.0
    width, full = 30, 30 * done // load.calls
    bar = "#" * full + "." * (width - full)
    words = f"{bar} {done:,} of {load.calls:,} calls, {rate:,.0f}/s, {left:,.0f} min left"
    print(words, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def _load_row(place: Place, load: _Load) -> Row:
    minutes = load.seconds / 60
    is_full = load.calls >= _CALLS["postgres"]
    return Row(
        name=f"load {load.calls:,} calls, {place.database}",
        figure=f"{minutes:,.1f} min, {load.calls / max(load.seconds, 1e-9):,.0f}/s",
        against="",
        ratio=None,
        goal=f"<= {MOST_LOAD_MINUTES} min" if is_full else "",
        ok=minutes <= MOST_LOAD_MINUTES if is_full else None,
    )


def verdict(name: str, place: Place, ms: float, before: float | None) -> Row:
    """A request at all calls, against the same at a tenth of them (None: it was not there)."""
    ratio = ms / before if before else None
    goal, ok = _goal(name, place, ms, ratio)
    return Row(
        name=f"{name}, {place.database}",
        figure=f"{ms:.1f} ms",
        against="" if before is None else f"{before:.1f} ms at a tenth",
        ratio=ratio,
        goal=goal,
        ok=ok,
    )


def _goal(name: str, place: Place, ms: float, ratio: float | None) -> tuple[str, bool]:
    most = _OWN_MS.get(name.partition(" ")[2])
    if place.database == "sqlite":
        most = _SQLITE_MS
    goals = [f"<= {MOST_GROWTH:g}x"] + ([f"< {most:g} ms"] if most else [])
    is_flat = ratio is None or ratio <= MOST_GROWTH or ms < _LEAST_MS
    return ", ".join(goals), is_flat and (most is None or ms < most)
