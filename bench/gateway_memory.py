"""Memory after 100,000 calls through the gateway, half of them streamed: of the process that serves
clients, and of the one that stores. BENCH_CALLS sets another number.

    python -m bench gateway_memory

Not part of a plain `make bench`: it takes some minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bench.databases import children_of
from bench.gateway import memory_row
from bench.gateways import OWN, ground, stored_calls
from bench.table import Row
from bench.turns import Case, resident_mib, take_turn

_CALLS = 100_000
_PARTS = 10
_PATIENCE_SECONDS = 600.0
# Of memory after all calls to that after the first tenth, when everything is loaded and warm.
_MOST_GROWTH = 1.10


def rows() -> list[Row]:
    """Memory at the end; how it grew is told on the way."""
    part = int(os.environ.get("BENCH_CALLS") or _CALLS) // _PARTS
    with ground() as found:
        own, pid = found.target(OWN), found.server.process.pid
        grown: list[float] = []
        writer: list[float] = []
        for number in range(_PARTS):
            case = Case(64, is_stream=number % 2 == 1)
            turn = take_turn(found.load, own, case, seconds=_PATIENCE_SECONDS, count=part)
            grown.append(resident_mib(pid))
            writer.append(sum(resident_mib(child) for child in children_of(pid)))
            print(
                f"  {own.sent:,} calls, {turn.per_second:,.0f}/s: {grown[-1]:.0f} MiB, "
                f"the writer {writer[-1]:.0f}",
                file=sys.stderr,
                flush=True,
            )
        stored = stored_calls(found.place)
        return [
            memory_row(found),
            _growth_row("gateway", grown, own.sent),
            _growth_row("the writer process", writer, own.sent),
            Row(
                name="gateway, calls recorded",
                figure=f"{stored:,}",
                against=f"{own.sent:,} answered",
                ratio=stored / own.sent,
                goal="all",
                ok=stored == own.sent,
            ),
        ]


def _growth_row(name: str, grown: Sequence[float], calls: int) -> Row:
    first, last = grown[0], grown[-1]
    return Row(
        name=f"{name}, memory after {calls:,} calls",
        figure=f"{last:.0f} MiB",
        against=f"{first:.0f} MiB after {calls // _PARTS:,}",
        ratio=last / first,
        goal=f"<= {_MOST_GROWTH:.2f}x",
        ok=last <= first * _MOST_GROWTH,
    )
