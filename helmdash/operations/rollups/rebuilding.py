"""Counting all calls of a project anew, from the newest back: resumable, in short transactions.

A quarter-hour at a time, while others record: what it has to be is what its calls come to, less
what waits of them and will be added by a fold. It is read before the transaction that writes, for
which SQLite's other writers wait, and within it where something is folded at each try. Hours, days
and months are then their parts added up, as soon as all of these are right: what begins at
`rebuilt_down_to` or later can be read. Quarter-hours whose calls retention has deleted stay as they
are.

Each step finds in the project's state how far it is and leaves it there, so that several processes
share the work: a server does it by itself after an upgrade (`rebuild_some`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any, Final

from django.db.models import Max, QuerySet

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.rollups.figures import (
    VERSION,
    Counts,
    Facts,
    Marginal,
    add,
    added_after,
    tally,
    wholes_of,
)
from helmdash.core.rollups.periods import Width, first_quarter, moment_of, period_of, quarter_of
from helmdash.operations.database.transactions import write, write_and_pause
from helmdash.operations.rollups.folding import fold_all, take_turn
from helmdash.operations.rollups.storing import store_slots
from helmdash.records.models import Call, Fit, PlanRecord, Project, Rollup, RollupState
from helmdash.records.rollups.rollup_keys import key_text
from helmdash.records.rollups.rollup_rows import Slot, read_periods, read_quarter

_ALL: Final = frozenset(Marginal)
_COMPOSED: Final = (Width.HOUR, Width.DAY, Width.MONTH)
# A quarter-hour of 15,000 calls, which SQLite takes, is read in some seconds, and a fold comes once
# a minute there. Where there are more of both, others wait as long as one reading takes.
_TRIES: Final = 3


@dataclass(slots=True)
class Rebuilt:
    """So far: calls that were counted, and rows that were not what they have to be.

    down_to: the last quarter-hour that was gone through; None: none yet.
    """

    calls: int = 0
    wrong: int = 0
    down_to: int | None = None


# After each step.
Progress = Callable[[Rebuilt], None]


def rebuild(*, actor: Actor, project_id: int, progress: Progress, anew: bool = False) -> Rebuilt:
    """Count all calls of a project; goes on where it broke off, unless it is to begin `anew`, and
    ends where the project, or all that is in it, is removed meanwhile.

    Raises Forbidden.
    """
    require(actor, Right.ADMINISTER, project_id=project_id)
    fold_all()
    done = Rebuilt()
    if not write(partial(_begin, project_id, anew=anew)):
        return done
    while _go_on(project_id, done):
        progress(done)
    return done


def is_wanted(now: datetime) -> bool:
    """Whether a project has calls, fits or plans from before there were rollups of them left to
    count."""
    return RollupState.unfinished().exists()


def rebuild_some(*, is_over: Callable[[], bool]) -> bool:
    """Go on with the projects that have calls from before there were rollups, until it `is_over`;
    False where there are none. Where only some marginals are left to count, no other is touched."""
    left = RollupState.unfinished().order_by("project_id")
    for project_id in left.values_list("project_id", flat=True):
        while _go_on(project_id, Rebuilt(), is_all=False):
            if is_over():
                return True
    return False


def _begin(project_id: int, *, anew: bool) -> bool:
    """False where there is no such project any more.

    Levels are counted anew by the next fold; until then pages count the conversations
    themselves. In turn: a fold under way would write the counts back that it has read."""
    take_turn(wait=True)
    if not Project.objects.select_for_update(no_key=True).filter(pk=project_id).exists():
        return False
    changes: dict[str, Any] = {"levels": None} | ({"rebuilt_down_to": None} if anew else {})
    RollupState.objects.update_or_create(project_id=project_id, defaults=changes)
    return True


@dataclass(frozen=True, slots=True)
class _Reached:
    """How far a project is: what a quarter-hour has to be is the same as long as this is.

    before: the quarter-hour that was gone through last; folded_to: the newest change in the
    rollups; some: the marginals to count.
    """

    before: int | None
    folded_to: int | None
    kept_from: int | None
    some: frozenset[Marginal]


@dataclass(frozen=True, slots=True)
class _Quarter:
    """The next quarter-hour to be right, None: none is left; the calls that were counted, and what
    they come to."""

    at: _Reached
    quarter: int | None
    calls: int
    told: dict[Slot, Counts]


def _go_on(project_id: int, done: Rebuilt, *, is_all: bool = True) -> bool:
    """Have the next quarter-hour be right, and what is composed of it; False where none is left,
    or all was removed.

    is_all: every marginal; else those that are missing.
    """
    ahead = _read_ahead(project_id, is_all=is_all)
    return ahead is not None and write_and_pause(
        partial(_step, project_id, done, ahead, is_all=is_all)
    )


def _read_ahead(project_id: int, *, is_all: bool) -> _Quarter | None:
    """The next quarter-hour, also where something is folded at each try; None: all was removed."""
    found: _Quarter | None = None
    for _ in range(_TRIES):
        state = RollupState.objects.filter(project_id=project_id).first()
        if state is None:
            return None
        reached = _reached(state, is_all=is_all)
        if found is not None and found.at == reached:
            break
        found = _read(project_id, reached)
    return found


def _step(project_id: int, done: Rebuilt, ahead: _Quarter, *, is_all: bool) -> bool:
    """Write what was read ahead, or what is read anew."""
    take_turn(wait=True)
    state = RollupState.objects.select_for_update().filter(project_id=project_id).first()
    if state is None:
        return False
    reached = _reached(state, is_all=is_all)
    found = ahead if ahead.at == reached else _read(project_id, reached)
    quarter, wrong = found.quarter, 0
    if quarter is not None:
        wrong = _correct(project_id, Width.QUARTER, quarter, found.told, reached.some)
    for width, period in _gone_through(reached.before, quarter):
        wrong += _compose(project_id, width, period, reached.some)
    state.rebuilt_down_to = quarter
    if quarter is None:
        state.is_complete, state.version = True, VERSION
    state.save(update_fields=["rebuilt_down_to", "is_complete", "version"])
    done.calls += found.calls
    done.wrong += wrong
    done.down_to = done.down_to if quarter is None else quarter
    return quarter is not None


def _reached(state: RollupState, *, is_all: bool) -> _Reached:
    some = added_after(state.version) if not is_all and state.is_complete else _ALL
    return _Reached(state.rebuilt_down_to, state.folded_to, state.kept_from, some)


def _read(project_id: int, at: _Reached) -> _Quarter:
    quarter = _newest(project_id, at.before, at.kept_from, at.some)
    if quarter is None:
        return _Quarter(at, None, 0, {})
    return _Quarter(at, quarter, *_told(project_id, quarter, at.some))


def _newest(
    project_id: int, before: int | None, kept_from: int | None, some: frozenset[Marginal]
) -> int | None:
    """The newest quarter-hour that has rows of some marginals or that a period with figures begins
    with, of those before one; None where there is none, or only such whose calls are deleted."""
    found: list[int] = []
    wholes = wholes_of(some)
    rows: QuerySet[Any]
    for marginal, rows, column in (
        (Marginal.ALL, Call.objects.filter(project_id=project_id), "started_at"),
        (Marginal.FIT, Fit.objects.filter(project_id=project_id), "created_at"),
        (Marginal.PLAN, PlanRecord.objects.filter(project_id=project_id), "started_at"),
    ):
        if marginal not in wholes:
            continue
        if before is not None:
            rows = rows.filter(**{f"{column}__lt": moment_of(before)})
        latest = rows.aggregate(at=Max(column))["at"]
        if latest is not None:
            found.append(quarter_of(latest))
    for marginal, width in product(wholes, Width):
        rows = Rollup.objects.filter(
            project_id=project_id, marginal=marginal.value, width=width.value
        )
        if before is not None:
            rows = rows.filter(period__lt=period_of(width, before))
        period = rows.aggregate(newest=Max("period"))["newest"]
        if period is not None:
            found.append(first_quarter(width, period))
    return max((each for each in found if kept_from is None or each >= kept_from), default=None)


def _gone_through(before: int | None, quarter: int | None) -> Iterator[tuple[Width, int]]:
    """The periods of which the last quarter-hour is right with this step, narrow ones first: they
    begin with `quarter` or later, and before the one that was gone through last."""
    for width in _COMPOSED:
        touched = {period_of(width, each) for each in (before, quarter) if each is not None}
        for period in sorted(touched):
            start = first_quarter(width, period)
            if (quarter is None or start >= quarter) and (before is None or start < before):
                yield width, period


def _told(
    project_id: int, quarter: int, some: frozenset[Marginal]
) -> tuple[int, dict[Slot, Counts]]:
    """How many calls a quarter-hour has, and what it has to be."""
    calls, others, waiting = read_quarter(project_id=project_id, quarter=quarter)
    found: list[Facts] = [*calls, *others]
    counted = [(None, facts) for facts in found]
    # What waits is taken away, for a fold is going to add it.
    only = next(iter(some)) if len(some) == 1 else None
    places = tally([*counted, *((new, old) for old, new in waiting)], only=only)
    told: dict[Slot, Counts] = {}
    for (at, marginal, key), counts in places.items():
        if at == quarter and marginal in some:
            told[Slot(marginal.value, Width.QUARTER.value, quarter, key_text(key))] = counts
    return len(calls), told


def _compose(project_id: int, width: Width, period: int, some: frozenset[Marginal]) -> int:
    """Have a period be what its parts add up to; how many rows were not."""
    finer = Width(width - 1)
    bounds = (first_quarter(width, each) for each in (period, period + 1))
    first, end = (period_of(finer, each) for each in bounds)
    told: dict[Slot, Counts] = {}
    parts = read_periods(project_id=project_id, width=finer, first=first, end=end, some=some)
    for part, (_, counts) in parts.items():
        add(told.setdefault(part._replace(width=width.value, period=period), {}), counts)
    return _correct(project_id, width, period, told, some)


def _correct(
    project_id: int,
    width: Width,
    period: int,
    told: dict[Slot, Counts],
    some: frozenset[Marginal],
) -> int:
    stored = read_periods(
        project_id=project_id, width=width, first=period, end=period + 1, some=some
    )
    wrong: dict[Slot, Counts] = {
        slot: told.get(slot, {})
        for slot in told.keys() | stored.keys()
        if slot not in stored or stored[slot][1] != told.get(slot, {})
    }
    store_slots(project_id, {slot: row[0] for slot, row in stored.items()}, wrong)
    return len(wrong)
