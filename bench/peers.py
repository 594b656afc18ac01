"""The gateway beside its floors and its peers, in one interleaved run.

    make bench ARGS=peers

Raw ASGI with aiohttp, the same with a batched SQLite record, HelmDash, Portkey and LiteLLM take
turns under the same load, one process each: requests of 3 kB and several messages, 30 kB beside.
Ratios are medians of the rounds' own. Not part of a plain `make bench`, for it installs the peers.
BENCH_ROUNDS and BENCH_SECONDS make it longer (3, 1).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from bench.databases import Worker
from bench.gateway import added_ms
from bench.gateways import DIRECT, LOWER, OWN, Ground, ground, start_floor, stored_calls
from bench.peer_servers import LITELLM, PORTKEY, NoPeer, start_litellm, start_portkey
from bench.table import Row
from bench.turns import Case, Target, Turn, Turns, median, median_ratio, take_turn, take_turns

RECORDING = "recording floor"
_SMALL, _LARGE = 3_000, 30_000
ONE, MANY, MOST = (Case(clients, size=_SMALL) for clients in (1, 16, 64))
_BIG = Case(16, size=_LARGE)
_WAITING = Case(16, size=_SMALL, is_slow=True)
_STREAM = Case(16, size=_SMALL, is_stream=True)
CASES = (ONE, MANY, MOST, _BIG, _WAITING, _STREAM)

_TRIAL_SECONDS = 0.3
_MOST_WORDS = 80

# What is to be reached (figures of HelmDash to those of the other).
LEAST_OF_RECORDING = 1 / 3
LEAST_OF_LITELLM = 20.0
LEAST_OF_PORTKEY = 2.0
MOST_CPU_OF_FLOOR = 4.0
MOST_P99_OF_RECORDING = 3.0
MOST_ADDED_OF_PORTKEY = 1.0
MOST_FIRST_BYTE_OF_PORTKEY = 1 / 8


def rows() -> list[Row]:
    """Measure everything; takes some minutes, and more the first time."""
    rounds = int(os.environ.get("BENCH_ROUNDS") or 3)
    seconds = float(os.environ.get("BENCH_SECONDS") or 1.0)
    with ground() as found, ExitStack() as stack:
        missing: list[Row] = []
        targets = [found.target(DIRECT), found.target(LOWER), _recording_floor(stack, found)]
        targets += [found.target(OWN), *_peers(stack, found, missing)]
        turns: Turns = {}
        for case in CASES:
            able = [each for each in targets if _can(found, each, case, missing)]
            turns |= take_turns(found.load, able, [case], rounds=rounds, seconds=seconds)
        kept = _with_texts(found, rounds=rounds, seconds=seconds)
        names = [target.name for target in targets]
        return [*figures(turns, names), *goals(turns), *_own(found, turns, kept), *missing]


def figures(turns: Turns, names: Sequence[str]) -> Iterator[Row]:
    """What each did, case by case."""
    for case in CASES:
        for name in names:
            if (name, case) not in turns:
                continue
            own = turns[name, case]
            yield Row(
                name=f"{case.name}, {name}",
                figure=f"{median(own, _speed):,.0f}/s, {median(own, _cpu):,.0f} us"
                f" (all processes {median(own, _all_cpu):,.0f})",
                against=f"p50 {median(own, _p50):.2f}, p99 {median(own, _p99):.2f} ms"
                + (f", first byte {median(own, _first):.2f}" if case.is_stream else ""),
                ratio=None if name == OWN else median_ratio(turns[OWN, case], own, _speed),
                goal="",
                ok=None,
            )


def goals(turns: Turns) -> Iterator[Row]:
    """What HelmDash is held to, as far as the other one was measured."""
    for case in (MANY, MOST):
        for other, least in (
            (RECORDING, LEAST_OF_RECORDING),
            (PORTKEY, LEAST_OF_PORTKEY),
            (LITELLM, LEAST_OF_LITELLM),
        ):
            yield from _goal(turns, case, other, "requests/s", _speed, least=least)
        yield from _goal(turns, case, LOWER, "CPU a request", _cpu, most=MOST_CPU_OF_FLOOR)
    yield from _goal(turns, ONE, RECORDING, "p99", _p99, most=MOST_P99_OF_RECORDING)
    for case, what, of, most in (
        (_WAITING, "added p50", _p50, MOST_ADDED_OF_PORTKEY),
        (_STREAM, "added to the first byte", _first, MOST_FIRST_BYTE_OF_PORTKEY),
    ):
        if (PORTKEY, case) in turns:
            direct = turns[DIRECT, case]
            added = [added_ms(turns[name, case], direct, of) for name in (OWN, PORTKEY)]
            yield _row(f"{what}, {case.name}", added[0], added[1], PORTKEY, most=most)


def _goal(
    turns: Turns,
    case: Case,
    other: str,
    what: str,
    of: Callable[[Turn], float],
    *,
    least: float | None = None,
    most: float | None = None,
) -> Iterator[Row]:
    if (other, case) not in turns:
        return
    own, others = turns[OWN, case], turns[other, case]
    yield _row(
        f"{what}, {case.name}", median(own, of), median(others, of), other,
        ratio=median_ratio(own, others, of), least=least, most=most,
    )  # fmt: skip


def _row(
    name: str,
    own: float,
    other: float,
    who: str,
    *,
    ratio: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Row:
    share = own / other if ratio is None else ratio
    goal = f">= {least:.3g}x" if least is not None else f"<= {most:.3g}x"
    is_met = share >= least if least is not None else share <= (most or 0.0)
    return Row(
        name=f"goal: {name}",
        figure=f"{own:,.2f}",
        against=f"{who} {other:,.2f}",
        ratio=share,
        goal=goal,
        ok=is_met,
    )


def _recording_floor(stack: ExitStack, found: Ground) -> Target:
    parent = found.place.data_dir.parent
    port, process = start_floor(
        stack,
        parent,
        "recording_calls",
        env={
            "BENCH_UPSTREAM": found.upstream_url,
            "BENCH_DATABASE": str(parent / "floor.sqlite3"),
        },
    )
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return Target(name=RECORDING, url=url, pids=[process.pid])


def _peers(stack: ExitStack, found: Ground, missing: list[Row]) -> Iterator[Target]:
    for name, start in ((PORTKEY, start_portkey), (LITELLM, start_litellm)):
        try:
            yield start(stack, found.upstream_url)
        except NoPeer as error:
            missing.append(_missing(name, str(error)))


def _can(found: Ground, target: Target, case: Case, missing: list[Row]) -> bool:
    """Whether it answers such a load as it should; a peer that does not is left out of it."""
    if target.name not in (PORTKEY, LITELLM):
        return True
    try:
        take_turn(found.load, target, case, seconds=_TRIAL_SECONDS)
    except RuntimeError as error:
        missing.append(_missing(f"{case.name}, {target.name}", str(error)[-_MOST_WORDS:]))
        return False
    return True


def _missing(name: str, why: str) -> Row:
    name = f"not measured: {name}"
    return Row(name=name, figure=why, against="", ratio=None, goal="", ok=None)


def _with_texts(found: Ground, *, rounds: int, seconds: float) -> list[Turn]:
    """HelmDash once more, with all texts kept."""
    with Worker("bench.inserts", found.place) as worker:
        worker.ask(do="payload", keep="full")
    own = found.target(OWN)
    take_turn(found.load, own, MANY, seconds=seconds)  # until every part knows of it
    return [take_turn(found.load, own, MANY, seconds=seconds) for _ in range(rounds)]


def _own(found: Ground, turns: Turns, kept: Sequence[Turn]) -> Iterator[Row]:
    yield Row(
        name=f"{MANY.name}, HelmDash, texts kept",
        figure=f"{median(kept, _speed):,.0f}/s, {median(kept, _cpu):,.0f} us",
        against=f"p50 {median(kept, _p50):.2f}, p99 {median(kept, _p99):.2f} ms",
        ratio=median_ratio(kept, turns[OWN, MANY], _speed),
        goal="",
        ok=None,
    )
    sent, stored = found.target(OWN).sent, stored_calls(found.place)
    yield Row(
        name="goal: calls recorded",
        figure=f"{stored:,}",
        against=f"{sent:,} answered",
        ratio=stored / sent,
        goal="all",
        ok=stored == sent,
    )


def _speed(turn: Turn) -> float:
    return turn.per_second


def _all_cpu(turn: Turn) -> float:
    return turn.all_us


def _cpu(turn: Turn) -> float:
    return turn.cpu_us


def _p50(turn: Turn) -> float:
    return turn.p50_ms


def _p99(turn: Turn) -> float:
    return turn.p99_ms


def _first(turn: Turn) -> float:
    return turn.first_ms
