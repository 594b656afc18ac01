"""Gateways under load, in turns: whatever else the machine does hits all of them alike."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.databases import Worker, cpu_seconds, tree_cpu_seconds
from bench.upstream_stub import FAST, SLOW

_WARM_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of load."""

    concurrency: int
    is_stream: bool = False
    is_slow: bool = False
    """Whether the upstream waits 20 ms before it answers."""
    size: int | None = None
    """Bytes of a request; None: 0.9 kB, of two messages."""

    @property
    def name(self) -> str:
        """Such as `stream, c=16`."""
        kind = "stream" if self.is_stream else "plain"
        size = f" of {self.size // 1000} kB" if self.size is not None else ""
        return f"{kind}{size}{' at 20 ms' if self.is_slow else ''}, c={self.concurrency}"


@dataclass(slots=True, kw_only=True)
class Target:
    """Something that answers chat completions, in a process of its own."""

    name: str
    url: str
    pids: Sequence[int]
    headers: Mapping[str, str] = field(default_factory=dict)
    settle: Callable[[int], float] | None = None
    """Waits until so many calls more are stored; gives the seconds that took."""
    sent: int = 0

    def cpu(self) -> float:
        """Seconds of CPU used so far."""
        return sum(map(cpu_seconds, self.pids))

    def all_cpu(self) -> float:
        """The same with all that these processes have started, as our writer process."""
        return sum(map(tree_cpu_seconds, self.pids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one target did under one load."""

    per_second: float
    cpu_us: float
    """Of the server process, for one reply, with what of the storing is done there."""
    all_us: float
    """The same with the processes that it has started: all of the storing."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    first_ms: float
    """The median time to the first byte of a body."""
    lag_seconds: float
    """How much later than the last reply everything was stored."""


Turns = dict[tuple[str, Case], list[Turn]]


def take_turns(
    worker: Worker, targets: Sequence[Target], cases: Sequence[Case], *, rounds: int, seconds: float
) -> Turns:
    """Every case on every target, `rounds` times. Raises RuntimeError on any wrong reply."""
    for target in targets:
        for case in cases:
            take_turn(worker, target, case, seconds=_WARM_SECONDS)
    taken: Turns = {(target.name, case): [] for target in targets for case in cases}
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for case in cases:
            # Another one begins each time: nobody always follows the same neighbour.
            for place in range(len(targets)):
                target = targets[(place + number) % len(targets)]
                turn = take_turn(worker, target, case, seconds=seconds)
                taken[target.name, case].append(turn)
    return taken


def take_turn(
    worker: Worker, target: Target, case: Case, *, seconds: float, count: int | None = None
) -> Turn:
    """One load on one target, for some seconds or until `count` replies came."""
    cpu, all_cpu = target.cpu(), target.all_cpu()
    found: dict[str, Any] = worker.ask(
        url=target.url,
        headers=dict(target.headers),
        model=SLOW if case.is_slow else FAST,
        stream=case.is_stream,
        concurrency=case.concurrency,
        seconds=seconds,
        count=count,
        bytes=case.size,
    )
    if found["errors"] or not found["whole_ms"]:
        raise RuntimeError(f"{target.name}, {case.name}: {found['errors'] or 'no reply'}")
    target.sent += found["count"]
    lag = target.settle(target.sent) if target.settle else 0.0
    whole = found["whole_ms"]
    return Turn(
        per_second=found["count"] / found["seconds"],
        cpu_us=(target.cpu() - cpu) / found["count"] * 1e6,
        all_us=(target.all_cpu() - all_cpu) / found["count"] * 1e6,
        p50_ms=whole["p50"],
        p95_ms=whole["p95"],
        p99_ms=whole["p99"],
        first_ms=found["first_ms"]["p50"],
        lag_seconds=lag,
    )


def median(turns: Sequence[Turn], of: Callable[[Turn], float]) -> float:
    """The median of a figure over the rounds."""
    return statistics.median(map(of, turns))


def median_ratio(
    ones: Sequence[Turn], others: Sequence[Turn], of: Callable[[Turn], float]
) -> float:
    """The median of the rounds' own ratios: both halves of a round met the same neighbours."""
    return statistics.median(of(one) / of(other) for one, other in zip(ones, others, strict=True))


def resident_mib(pid: int, *, peak: bool = False) -> float:
    """Memory of a process that is in RAM now, or the most that ever was. Linux only."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")


def wait_until(is_so: Callable[[], bool], *, most_seconds: float) -> float:
    """Seconds until something is so, looked at every 20 ms. Raises TimeoutError."""
    began = time.perf_counter()
    while not is_so():
        if time.perf_counter() - began > most_seconds:
            raise TimeoutError(f"not within {most_seconds:g} s")
        time.sleep(0.02)
    return time.perf_counter() - began
