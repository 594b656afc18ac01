"""The gateway's memory after 100,000 calls, half of them streamed. BENCH_CALLS sets another number.

    python -m bench gateway_memory

Not part of a plain `make bench`: it takes some minutes.
"""

from __future__ import annotations

import os
import sys

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
        for number in range(_PARTS):
            case = Case(64, is_stream=number % 2 == 1)
            turn = take_turn(found.load, own, case, seconds=_PATIENCE_SECONDS, count=part)
            grown.append(resident_mib(pid))
            print(
                f"  {own.sent:,} calls, {turn.per_second:,.0f}/s: {grown[-1]:.0f} MiB",
                file=sys.stderr,
                flush=True,
            )
        stored = stored_calls(found.place)
        return [
            memory_row(found),
            Row(
                name=f"gateway, memory after {own.sent:,} calls",
                figure=f"{grown[-1]:.0f} MiB",
                against=f"{grown[0]:.0f} MiB after {part:,}",
                ratio=grown[-1] / grown[0],
                goal=f"<= {_MOST_GROWTH:.2f}x",
                ok=grown[-1] <= grown[0] * _MOST_GROWTH,
            ),
            Row(
                name="gateway, calls recorded",
                figure=f"{stored:,}",
                against=f"{own.sent:,} answered",
                ratio=stored / own.sent,
                goal="all",
                ok=stored == own.sent,
            ),
        ]
