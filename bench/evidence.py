"""What core.evidence finds on simulated fleets whose truth is known: how often right, how often
wrong.

Not a matter of time: the figures are the same on every machine. The seeds are others than those
that the constants were chosen by (docs/evidence.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count, islice
from random import Random
from statistics import median

from bench import known_law
from bench.table import Row
from helmdash.core.evidence.safe_input import find_safe_input
from helmdash.core.evidence.sized_cells import sized
from helmdash.core.evidence.trialling import FALSE_STOPS
from tests.support import fleets, trial_fleets
from tests.support.fleet_figures import estimator_error, plateau_error

_FLEETS = int(os.environ.get("BENCH_FLEETS", "300"))
_CALLS = 300
# What is asked of each kind: 2 % without a cliff, 3 % where something else happened. Steep slopes
# and falls of exactly forty points cannot both be told by 300 calls as far (docs/evidence.md).
_MOST: dict[fleets.Kind, float] = {
    fleets.outage: 0.03,
    fleets.version: 0.03,
    fleets.shifting: 0.03,
    fleets.mixed: 0.03,
    fleets.drift: 0.03,
    fleets.talking: 0.03,
    fleets.gone_cliff: 0.03,
    fleets.flat: 0.02,
    fleets.slope: 0.02,
    fleets.steep: 0.02,
}
_LEAST: dict[fleets.Kind, float] = {
    fleets.cliff: 0.95,
    fleets.weak_cliff: 0.95,
    fleets.asked_cliff: 0.95,
    fleets.troubled_cliff: 0.95,
    fleets.talking_cliff: 0.95,
    fleets.late_cliff: 0.95,
}
# Where a model has months of calls, days are read instead of hours (queries.evidence.learned): of
# fleets of so many calls and days.
_MANY_CALLS, _LEAST_DAYS, _DAY = 3_000, 50, 86_400.0
_BY_DAYS = (fleets.weak_cliff, fleets.troubled_cliff, fleets.shifting, fleets.outage)
# How much worse the suggested budget is, of how many conversations, and its share of them.
_TRIALS = (
    (0.0, 300, 0.2),
    (0.0, 1000, 0.2),
    (0.0, 1000, 0.05),
    (0.05, 1000, 0.2),
    (0.1, 300, 0.2),
    (0.1, 1000, 0.2),
    (0.2, 300, 0.2),
    (0.3, 300, 0.2),
)


def rows() -> list[Row]:
    """One row for each kind of fleet, and one for each other figure."""
    found = [_of_kind(kind) for kind in fleets.KINDS]
    found += [_of_kind(kind, by_days=True) for kind in _BY_DAYS]
    seeds = [Random(f"bench-{number}") for number in range(_FLEETS)]
    off = sorted(plateau_error(each) for each in seeds)
    found.append(
        Row(
            name="hard windows by plateaus",
            figure=f"{sum(each <= 0.02 for each in off) / len(off):.1%} within 2 %",
            against=f"{len(off)} servers",
            ratio=None,
            goal=">= 95 %",
            ok=sum(each <= 0.02 for each in off) >= 0.95 * len(off),
        )
    )
    errors = median(estimator_error(each) for each in seeds)
    found.append(
        Row(
            name="estimator after learning",
            figure=f"{errors:.1%} off at the median",
            against=f"{len(seeds)} models",
            ratio=None,
            goal="<= 5 %",
            ok=errors <= 0.05,
        )
    )
    return [*found, known_law.row(_FLEETS, _CALLS), *map(_of_trials, _TRIALS)]


def _of_trials(what: tuple[float, int, float]) -> Row:
    harm, conversations, share = what
    ended = []
    for number in range(_FLEETS):
        random = Random(f"bench-trial-{harm}-{conversations}-{share}-{number}")
        fleet = trial_fleets.fleet(random, harm=harm, conversations=conversations, share=share)
        ended.append(trial_fleets.run(random, fleet))
    at = sorted(each.conversations for each in ended if each.is_stopped)
    part = len(at) / _FLEETS
    soon = f", half of them within {at[len(at) // 2]}" if harm and at else ""
    return Row(
        name=f"trials, {harm:.0%} worse, {share:.0%} of {conversations} conversations",
        figure=f"{part:.1%} stopped{soon}",
        against=f"{_FLEETS} trials",
        ratio=None,
        goal="" if harm else "<= 1 %",
        ok=None if harm else part <= FALSE_STOPS,
    )


def _of_kind(kind: fleets.Kind, *, by_days: bool = False) -> Row:
    right = suggested = 0
    for fleet in islice(_long_fleets(kind) if by_days else _fleets(kind, _CALLS), _FLEETS):
        seconds = _DAY if by_days else fleets.HOUR
        found = find_safe_input(sized(fleets.cells_of(fleet.calls, seconds=seconds)))
        suggested += found.ceiling is not None
        right += fleets.is_right(fleet, found)
    least, most = _LEAST.get(kind), _MOST.get(kind)
    share = (right if kind in fleets.CLIFFS else suggested) / _FLEETS
    said = "found within a band" if kind in fleets.CLIFFS else "suggested, though there is none"
    goal = f">= {least:.0%}" if least else f"<= {most:.0%}" if most else ""
    ok = share >= least if least else share <= most if most else None
    return Row(
        name=f"safe input, {kind.__name__.replace('_', ' ')}" + ", by days" * by_days,
        figure=f"{share:.1%} {said}",
        against=f"{_FLEETS} fleets",
        ratio=None,
        goal=goal,
        ok=ok,
    )


def _fleets(kind: fleets.Kind, calls: int) -> Iterator[fleets.Fleet]:
    return (kind(Random(f"bench-{kind.__name__}-{number}"), calls) for number in count())


def _long_fleets(kind: fleets.Kind) -> Iterator[fleets.Fleet]:
    """Those that are told by days: one in five."""
    for fleet in _fleets(kind, _MANY_CALLS):
        if fleet.calls[-1].at - fleet.calls[0].at > _LEAST_DAYS * _DAY:
            yield fleet
