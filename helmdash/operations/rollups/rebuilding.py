"""Counting all calls of a project anew, from the newest day back: resumable, in short transactions.

A quarter-hour at a time, while others record: what it has to be is what its calls come to, less
what waits of them and will be added by a fold. Hours, days and months are then their parts added
up. Quarter-hours whose calls retention has deleted stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from django.db.models import Max, Min

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.rollups.figures import Counts, Marginal, add, tally
from helmdash.core.rollups.periods import Width, first_quarter, moment_of, period_of, quarter_of
from helmdash.operations.database.transactions import write
from helmdash.operations.rollups.folding import fold_all, take_turn
from helmdash.operations.rollups.storing import store_slots
from helmdash.records.models import Call, Rollup, RollupState
from helmdash.records.rollup_rows import Slot, key_text, read_periods, read_quarter

# A step at a time, the day it is at (as its first quarter-hour).
Progress = Callable[["Rebuilt"], None]


@dataclass(slots=True)
class Rebuilt:
    """So far: calls that were counted, rows that were not what they have to be, days gone through.

    day: the last one, as the number of its first quarter-hour.
    """

    calls: int = 0
    wrong: int = 0
    days: int = 0
    day: int = 0


def rebuild(*, actor: Actor, project_id: int, progress: Progress, anew: bool = False) -> Rebuilt:
    """Count all calls of a project; goes on where it broke off, unless it is to begin `anew`.

    progress hears of each day. Raises Forbidden.
    """
    require(actor, Right.ADMINISTER, project_id=project_id)
    fold_all()
    done = Rebuilt()
    state, _ = RollupState.objects.get_or_create(project_id=project_id)
    before = None if anew else state.rebuilt_down_to
    month = None if before is None else period_of(Width.MONTH, before)
    for day in _days(project_id, before):
        start = first_quarter(Width.DAY, day)
        if month is not None and month != period_of(Width.MONTH, start):
            done.wrong += write(partial(_compose, project_id, Width.MONTH, month))
        month = period_of(Width.MONTH, start)
        _rebuild_day(project_id, day, done)
        RollupState.objects.filter(project_id=project_id).update(rebuilt_down_to=start)
        progress(done)
    if month is not None:
        done.wrong += write(partial(_compose, project_id, Width.MONTH, month))
    state_row = RollupState.objects.filter(project_id=project_id)
    state_row.update(rebuilt_down_to=None, is_complete=True)
    return done


def _days(project_id: int, before: int | None) -> Iterator[int]:
    """Every day that has calls or rollups, the newest first, from before a quarter-hour on."""
    while True:
        newest = _newest(project_id, before)
        if newest is None:
            return
        yield newest
        before = first_quarter(Width.DAY, newest)


def _newest(project_id: int, before: int | None) -> int | None:
    """The newest day that has any, of those before a quarter-hour."""
    found: list[int] = []
    calls = Call.objects.filter(project_id=project_id)
    if before is not None:
        calls = calls.filter(started_at__lt=moment_of(before))
    latest = calls.aggregate(at=Max("started_at"))["at"]
    if latest is not None:
        found.append(quarter_of(latest))
    for width in (Width.QUARTER, Width.HOUR, Width.DAY):
        # Every call is in the figures of all.
        rows = Rollup.objects.filter(project_id=project_id, marginal="all", width=width.value)
        if before is not None:
            rows = rows.filter(period__lt=period_of(width, before))
        period = rows.aggregate(newest=Max("period"))["newest"]
        if period is not None:
            found.append(first_quarter(width, period))
    return period_of(Width.DAY, max(found)) if found else None


def _rebuild_day(project_id: int, day: int, done: Rebuilt) -> None:
    start = first_quarter(Width.DAY, day)
    hours = set(_stored(project_id, Width.HOUR, day))
    for quarter in sorted({*_called(project_id, day), *_stored(project_id, Width.QUARTER, day)}):
        hours.add(period_of(Width.HOUR, quarter))
        calls, wrong = write(partial(_rebuild_quarter, project_id, quarter))
        done.calls += calls
        done.wrong += wrong
    for hour in sorted(hours):
        done.wrong += write(partial(_compose, project_id, Width.HOUR, hour))
    done.wrong += write(partial(_compose, project_id, Width.DAY, day))
    done.days += 1
    done.day = start


def _called(project_id: int, day: int) -> Iterator[int]:
    """The quarter-hours of a day that calls started in: along their index, from one to the next."""
    calls = Call.objects.filter(
        project_id=project_id, started_at__lt=moment_of(first_quarter(Width.DAY, day + 1))
    )
    at = first_quarter(Width.DAY, day)
    while True:
        first = calls.filter(started_at__gte=moment_of(at)).aggregate(at=Min("started_at"))["at"]
        if first is None:
            return
        yield quarter_of(first)
        at = quarter_of(first) + 1


def _stored(project_id: int, width: Width, day: int) -> list[int]:
    """The periods of a day that there are rollups of."""
    bounds = (first_quarter(Width.DAY, each) for each in (day, day + 1))
    first, end = (period_of(width, each) for each in bounds)
    rows = Rollup.objects.filter(
        project_id=project_id,
        marginal__in=[each.value for each in Marginal],
        width=width.value,
        period__gte=first,
        period__lt=end,
    )
    return list(rows.values_list("period", flat=True).distinct())


def _rebuild_quarter(project_id: int, quarter: int) -> tuple[int, int]:
    take_turn(wait=True)
    state = RollupState.objects.select_for_update().get(project_id=project_id)
    if state.kept_from is not None and quarter < state.kept_from:
        return 0, 0
    calls, waiting = read_quarter(project_id=project_id, quarter=quarter)
    counted = [(None, facts) for facts in calls]
    # What waits is taken away, for a fold is going to add it.
    places = tally([*counted, *((new, old) for old, new in waiting)])
    told: dict[Slot, Counts] = {}
    for (at, marginal, key), counts in places.items():
        if at == quarter:
            told[Slot(marginal.value, Width.QUARTER.value, quarter, key_text(key))] = counts
    return len(calls), _correct(project_id, Width.QUARTER, quarter, told)


def _compose(project_id: int, width: Width, period: int) -> int:
    """Have a period be what its parts add up to; how many rows were not."""
    take_turn(wait=True)
    finer = Width(width - 1)
    bounds = (first_quarter(width, each) for each in (period, period + 1))
    first, end = (period_of(finer, each) for each in bounds)
    told: dict[Slot, Counts] = {}
    parts = read_periods(project_id=project_id, width=finer, first=first, end=end)
    for part, (_, counts) in parts.items():
        add(told.setdefault(part._replace(width=width.value, period=period), {}), counts)
    return _correct(project_id, width, period, told)


def _correct(project_id: int, width: Width, period: int, told: dict[Slot, Counts]) -> int:
    stored = read_periods(project_id=project_id, width=width, first=period, end=period + 1)
    wrong: dict[Slot, Counts] = {
        slot: told.get(slot, {})
        for slot in told.keys() | stored.keys()
        if slot not in stored or stored[slot][1] != told.get(slot, {})
    }
    store_slots(project_id, {slot: row[0] for slot, row in stored.items()}, wrong)
    return len(wrong)
