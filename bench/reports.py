"""Reports of calls to a real server, against floors that do nothing but store them.

`POST /calls` at one client and at 16, and batches, with requests of 3 and of 30 kB, on tables that
have grown as a user's grow; SQLite and PostgreSQL. The floors: raw ASGI over one SQLite table with
the same durability (bench.floors.recording), and for batches on PostgreSQL a COPY of such rows.
All take turns within one run, because other work on the machine changes all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.databases import Place, Worker, places, serving, tree_cpu_seconds
from bench.gateways import start_floor
from bench.table import Row

ROUNDS = 5
SECONDS = 2.0
GROWN_CALLS = 26_000
BATCH_CALLS = 100
# Bytes of a request, and what the project keeps of its texts.
SETTINGS = ((3_000, "full"), (3_000, "off"), (30_000, "full"))
# A project's settings rule everywhere within a second.
_SETTLED_SECONDS = 1.2
# What is to be reached of the floor's rate, by database and whether it is a batch: nobody should
# have to leave out calls because telling of them is dear.
GOALS = {
    ("sqlite", False): 1 / 6,
    ("postgres", False): 1 / 8,
    ("sqlite", True): 1 / 3,
    ("postgres", True): 1 / 4,
}
MOST_CPU_OF_FLOOR = 3.0


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of load."""

    clients: int
    calls_each: int
    size: int
    keeps: str = "full"
    """The project's payload setting: `full`, or `off`."""

    @property
    def path(self) -> str:
        return "/calls" if self.calls_each == 1 else "/calls/batch"

    @property
    def name(self) -> str:
        """Such as `single, c=16, 3 kB, texts on`."""
        kind = f"single, c={self.clients}" if self.calls_each == 1 else f"by {self.calls_each}"
        return f"{kind}, {self.size // 1000} kB, texts {'on' if self.keeps == 'full' else 'off'}"


@dataclass(slots=True, kw_only=True)
class Side:
    """Something that takes reports: its URL up to the path, and its process."""

    name: str
    url: str
    pid: int
    headers: Mapping[str, str] = field(default_factory=dict)
    turns: dict[Case, list[tuple[float, float]]] = field(default_factory=dict)
    """Calls per second, and microseconds of CPU for each."""

    def take(self, load: Worker, case: Case, run: str, *, most: int, seconds: float) -> None:
        """One turn."""
        before = tree_cpu_seconds(self.pid)
        told = load.ask(
            url=self.url + case.path,
            headers=dict(self.headers),
            run=run,
            clients=case.clients,
            calls_each=case.calls_each,
            bytes=case.size,
            most=most,
            seconds=seconds,
        )
        if told["errors"]:
            raise RuntimeError(f"{self.name}, {case.name}: {told['errors']}")
        used = tree_cpu_seconds(self.pid) - before
        turn = (told["calls"] / told["seconds"], used / told["calls"] * 1e6)
        self.turns.setdefault(case, []).append(turn)

    def rate(self, case: Case) -> float:
        return statistics.median(rate for rate, _ in self.turns[case])

    def cpu_us(self, case: Case) -> float:
        return statistics.median(cpu for _, cpu in self.turns[case])


def cases() -> list[Case]:
    """All kinds of load."""
    loads = ((1, 1), (16, 1), (1, BATCH_CALLS))
    return [Case(clients, each, size, keeps) for size, keeps in SETTINGS for clients, each in loads]


def rows() -> list[Row]:
    """Calls stored per second and CPU of the server, beside its floor, on each database."""
    with places() as found:
        return [row for place in found for row in _measure(place)]


def _measure(place: Place) -> list[Row]:
    with ExitStack() as stack:
        server = stack.enter_context(serving(place))
        load = stack.enter_context(Worker("bench.posting", place))
        url = f"{server.base_url}/api/v1"
        own = Side(name="HelmDash", url=url, pid=server.process.pid, headers=server.headers)
        floor = floor_side(stack, place.data_dir / "floor")
        for side in (own, floor):
            grow(side, load, "grown")
        copied: dict[Case, list[float]] = {}
        copier = stack.enter_context(Worker("bench.inserts", place))
        keeps = ""
        for number in range(ROUNDS):
            for place_in_round, case in enumerate(cases()):
                if case.keeps != keeps:
                    keeps = case.keeps
                    copier.ask(do="payload", keep=keeps)
                    time.sleep(_SETTLED_SECONDS)
                for side in (own, floor):
                    run = f"{side.name}-{number}-{place_in_round}"
                    side.take(load, case, run, most=_most(case), seconds=SECONDS)
                if case.calls_each > 1 and place.database == "postgres":
                    asked = {
                        "calls": 512,
                        "run": f"copy-{number}-{place_in_round}",
                        "size": case.size,
                    }
                    copied.setdefault(case, []).append(512 / copier.ask(do="copy", **asked))
        return list(_rows(place.database, own, floor, copied))


def floor_side(stack: ExitStack, parent: Path) -> Side:
    """Start the recording floor with its own file."""
    parent.mkdir(parents=True, exist_ok=True)
    port, process = start_floor(
        stack, parent, "recording", env={"BENCH_DATABASE": str(parent / "floor.sqlite3")}
    )
    return Side(name="floor", url=f"http://127.0.0.1:{port}", pid=process.pid)


def grow(side: Side, load: Worker, run: str, calls: int = GROWN_CALLS) -> None:
    """Fill the tables as a user's calls would, and forget how long that took."""
    case = Case(1, 500, 3_000)
    side.take(load, case, run, most=calls // 500, seconds=600)
    side.turns.clear()


def _most(case: Case) -> int:
    """Requests to make for one turn: enough for the floor, and little memory."""
    return min(
        6_000 * (1 if case.size < 10_000 else 2) // (1 if case.calls_each == 1 else 50), 6_000
    )


def _rows(
    database: str, own: Side, floor: Side, copied: Mapping[Case, Sequence[float]]
) -> Iterator[Row]:
    for case in cases():
        is_batch = case.calls_each > 1
        rate, cpu = own.rate(case), own.cpu_us(case)
        least, floor_cpu = floor.rate(case), floor.cpu_us(case)
        against = f"floor {least:,.0f}/s, {floor_cpu:,.0f} us"
        if case in copied:
            least = statistics.median(copied[case])
            against = f"COPY {least:,.0f}/s"
        goal = GOALS[database, is_batch]
        yield Row(
            name=f"report, {case.name}, {database}",
            figure=f"{rate:,.0f}/s, {cpu:,.0f} us",
            against=against,
            ratio=rate / least,
            goal=f">= {goal:.3f}",
            ok=rate / least >= goal,
        )
        if is_batch and database == "sqlite":
            yield Row(
                name="  CPU of the floor's",
                figure=f"{cpu:,.0f} us",
                against=f"{floor_cpu:,.0f} us",
                ratio=cpu / floor_cpu,
                goal=f"<= {MOST_CPU_OF_FLOOR:g}",
                ok=cpu / floor_cpu <= MOST_CPU_OF_FLOOR,
            )
