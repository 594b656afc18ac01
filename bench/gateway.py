"""The gateway in front of a quick upstream, against two gateways that only pass on.

One worker, a key, recording on, SQLite. The upstream alone, raw ASGI with aiohttp, raw ASGI with
httpx over our aiohttp transport and HelmDash take turns under the same load; ratios are medians of
the rounds' own. CPU is of the server process with all its threads, and ends when every call is
stored. How much memory 100,000 calls take: python -m bench gateway_memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench.databases import Worker
from bench.gateways import DIRECT, LOWER, OWN, UPPER, Ground, ground, stored_calls
from bench.table import Row
from bench.turns import Case, Turn, Turns, median, median_ratio, resident_mib, take_turn, take_turns

ROUNDS = 3
SECONDS = 1.0
_CONCURRENCY = (1, 16, 64)
_SLOW_PLAIN = Case(16, is_slow=True)
_SLOW_STREAM = Case(16, is_stream=True, is_slow=True)
CASES = (
    *(Case(c) for c in _CONCURRENCY),
    *(Case(c, is_stream=True) for c in _CONCURRENCY),
    _SLOW_PLAIN,
    _SLOW_STREAM,
)

# What must be reached: CPU per request against the aiohttp floor, and at c=64 over c=1.
MOST_CPU_OF_FLOOR = 4.5
MOST_CPU_GROWTH = 1.2
MOST_MIB = 200.0


def rows() -> list[Row]:
    """Measure everything; takes about two and a half minutes."""
    with ground() as found:
        turns = take_turns(found.load, found.targets, CASES, rounds=ROUNDS, seconds=SECONDS)
        kept = _with_texts(found)
        return [*_load_rows(turns), *_delay_rows(turns), *_own_rows(found, turns, kept)]


def _with_texts(found: Ground) -> list[Turn]:
    """The plain load once more, with all texts kept."""
    with Worker("bench.inserts", found.place) as worker:
        worker.ask(do="payload", keep="full")
    own = found.target(OWN)
    take_turn(found.load, own, Case(16), seconds=SECONDS)  # until every part knows of it
    return [take_turn(found.load, own, Case(16), seconds=SECONDS) for _ in range(ROUNDS)]


def _load_rows(turns: Turns) -> Iterator[Row]:
    for case in CASES:
        if not case.is_slow:
            own, direct = turns[OWN, case], turns[DIRECT, case]
            yield Row(
                name=f"gateway {case.name}",
                figure=f"{_speed(own):,.0f}/s, p50 {_p50(own):.2f} ms",
                against=f"{DIRECT} {_speed(direct):,.0f}/s, {_p50(direct):.2f} ms",
                ratio=median_ratio(own, direct, _per_second),
                goal="",
                ok=None,
            )
            yield _cpu_row(turns, case, LOWER, most=MOST_CPU_OF_FLOOR)
            yield _cpu_row(turns, case, UPPER, most=None)
    for is_stream in (False, True):
        yield _growth_row(turns, is_stream)


def _cpu_row(turns: Turns, case: Case, floor: str, *, most: float | None) -> Row:
    own, other = turns[OWN, case], turns[floor, case]
    ratio = median_ratio(own, other, _cpu_us)
    return Row(
        name=f"  CPU a request, to the {floor}",
        figure=f"{median(own, _cpu_us):,.0f} us",
        against=f"{median(other, _cpu_us):,.0f} us, {_speed(other):,.0f}/s",
        ratio=ratio,
        goal="" if most is None else f"<= {most:g}x",
        ok=None if most is None else ratio <= most,
    )


def _growth_row(turns: Turns, is_stream: bool) -> Row:
    fewest, most = (Case(c, is_stream=is_stream) for c in (_CONCURRENCY[0], _CONCURRENCY[-1]))
    one, many = turns[OWN, fewest], turns[OWN, most]
    ratio = median_ratio(many, one, _cpu_us)
    return Row(
        name=f"gateway CPU a request, {most.name} to c=1",
        figure=f"{median(many, _cpu_us):,.0f} us",
        against=f"{median(one, _cpu_us):,.0f} us",
        ratio=ratio,
        goal=f"<= {MOST_CPU_GROWTH:g}x",
        ok=ratio <= MOST_CPU_GROWTH,
    )


def _delay_rows(turns: Turns) -> Iterator[Row]:
    def added(case: Case, name: str, of: Callable[[Turn], float]) -> float:
        return added_ms(turns[name, case], turns[DIRECT, case], of)

    for what, case, of in (
        ("p50", _SLOW_PLAIN, _whole_ms),
        ("first byte", _SLOW_STREAM, _first_ms),
        ("first byte", Case(16, is_stream=True), _first_ms),
    ):
        own = added(case, OWN, of)
        yield Row(
            name=f"gateway adds to {what}, {case.name}",
            figure=f"{own:.2f} ms",
            against=", ".join(f"{name} {added(case, name, of):.2f} ms" for name in (LOWER, UPPER)),
            ratio=own / added(case, LOWER, of),
            goal="",
            ok=None,
        )


def _own_rows(found: Ground, turns: Turns, kept: Sequence[Turn]) -> Iterator[Row]:
    own = [turn for case in CASES for turn in turns[OWN, case]] + list(kept)
    sent, stored = found.target(OWN).sent, stored_calls(found.place)
    yield Row(
        name="gateway, calls recorded",
        figure=f"{stored:,}, the last {max(turn.lag_seconds for turn in own):.2f} s later",
        against=f"{sent:,} answered",
        ratio=stored / sent,
        goal="all",
        ok=stored == sent,
    )
    yield Row(
        name="gateway plain, c=16, texts kept",
        figure=f"{_speed(kept):,.0f}/s, {median(kept, _cpu_us):,.0f} us of CPU",
        against="",
        ratio=None,
        goal="",
        ok=None,
    )
    yield memory_row(found)


def memory_row(found: Ground) -> Row:
    """What the server's process holds in memory after all calls so far."""
    pid = found.server.process.pid
    peak = resident_mib(pid, peak=True)
    return Row(
        name="gateway, memory",
        figure=f"{resident_mib(pid):.0f} MiB, at most {peak:.0f}",
        against=f"after {found.target(OWN).sent:,} calls",
        ratio=None,
        goal=f"< {MOST_MIB:g} MiB",
        ok=peak < MOST_MIB,
    )


def added_ms(own: Sequence[Turn], direct: Sequence[Turn], of: Callable[[Turn], float]) -> float:
    """By how much a gateway's time exceeds the upstream's own: the medians' difference."""
    return median(own, of) - median(direct, of)


def _per_second(turn: Turn) -> float:
    return turn.per_second


def _cpu_us(turn: Turn) -> float:
    return turn.cpu_us


def _whole_ms(turn: Turn) -> float:
    return turn.p50_ms


def _first_ms(turn: Turn) -> float:
    return turn.first_ms


def _speed(turns: Sequence[Turn]) -> float:
    return median(turns, _per_second)


def _p50(turns: Sequence[Turn]) -> float:
    return median(turns, _whole_ms)
