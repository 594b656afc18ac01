"""Figures of any range of time: from rollups, its edges from the calls themselves.

A range is made of the fewest periods that fill it, so that a year costs what a day costs. What was
recorded a moment ago and waits to be added is counted along.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Count, Min, Sum

from helmdash.core.rollups.figures import (
    CALLS,
    OF_FITS,
    OF_PLANS,
    Change,
    Counts,
    Distribution,
    Facts,
    Key,
    Marginal,
    Place,
    add,
    new_keys,
    tally,
    version_with,
    with_only,
)
from helmdash.core.rollups.periods import cover, first_quarter, moment_of, quarter_of
from helmdash.core.rollups.plan_facts import RUNNING
from helmdash.records.models import Call, Fit, PlanRecord, RollupState, UncountedCalls
from helmdash.records.rollups.call_facts import facts_of
from helmdash.records.rollups.fit_facts import fit_facts_of
from helmdash.records.rollups.plan_facts import plan_facts_of
from helmdash.records.rollups.rollup_rows import read_keys, read_spans

# An edge with more calls is rounded to its quarter-hour: reading them takes a tenth of a second.
MOST_EDGE_CALLS: Final = 10_000
# Transactions of recording that a reader adds itself; a server that lives leaves fewer waiting.
MOST_UNCOUNTED: Final = 400
_NEVER: Final = 2**62


@dataclass(slots=True)
class RangeFigures:
    """Figures by key, in pieces of time that do not overlap: when each begins, and its counts.

    is_rounded: an edge was moved to the next quarter-hour outside, since it has too many calls to
    read or they are deleted. is_behind: more calls wait to be counted than were read. has_calls:
    the calls of the whole range are still there.
    """

    pieces: dict[Key, list[tuple[int, Counts]]] = field(default_factory=dict)
    is_rounded: bool = False
    is_behind: bool = False
    has_calls: bool = True

    @property
    def calls(self) -> int:
        """How many calls the whole range has."""
        return sum(counts.get(CALLS, 0) for pieces in self.pieces.values() for _, counts in pieces)

    def totals(self, is_wanted: Callable[[Key], bool] = lambda _: True) -> dict[Key, Counts]:
        """The figures of the whole range, of the keys that are wanted; one without calls is left
        out."""
        totals: dict[Key, Counts] = {}
        for key, pieces in self.pieces.items():
            for _, counts in pieces if is_wanted(key) else ():
                add(totals.setdefault(key, {}), counts)
        return {key: counts for key, counts in totals.items() if counts.get(CALLS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is not in the rollups of all projects yet: calls and fits recorded lately, and by how
    many transactions.

    age_s: since the oldest of them was recorded; 0 where none waits. projects: that have calls from
    before there were rollups left to count.
    """

    calls: int
    transactions: int
    age_s: float
    projects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """How far the calls of a project from before there were rollups are counted, from the newest
    back. down_to: None: not begun. first_call_at: where it ends; None: it has no calls."""

    project: str
    down_to: datetime | None
    first_call_at: datetime | None


def figures(
    *,
    project_id: int,
    marginal: Marginal,
    since: datetime | None,
    until: datetime | None,
    distributions: Collection[Distribution] = (),
    words: Sequence[str] | None = None,
    is_summed: bool = False,
) -> RangeFigures | None:
    """The figures of calls that started from `since` to before `until`; None: without that bound.

    distributions: those that are wanted, for they are most of what is read and added up. words:
    only keys that begin with one of them; None: every key. is_summed: periods need not be apart,
    but for how a model was spelt; those of a width come as one piece, of which nothing is changed.

    Two queries, and one for each edge that is not a quarter-hour's. None as an answer: the range
    reaches back to calls from before there were rollups, which are still to be counted.
    """
    state = RollupState.objects.filter(project_id=project_id).first()
    counted_from = None if state is None else counted_down_to(state, marginal)
    if counted_from is not None and (since is None or quarter_of(since) < counted_from):
        return None
    kept_from = state.kept_from if state is not None else None
    found = RangeFigures(
        has_calls=kept_from is None or (since is not None and quarter_of(since) >= kept_from)
    )
    first, end = _whole(since, until)
    for cut in _cut(since, until):
        is_gone = kept_from is not None and cut.quarter < kept_from
        inside = [] if is_gone else _read(project_id, marginal, cut)
        if not is_gone and len(inside) <= MOST_EDGE_CALLS:
            _take(found, tally(((None, each) for each in inside), only=marginal), distributions)
            continue
        found.is_rounded = True
        first = cut.quarter if first == cut.quarter + 1 else first
        end = cut.quarter + 1 if end == cut.quarter else end
    if first is not None and end is not None and first >= end:
        return _of_words(found, words)
    stored = read_spans(
        project_id=project_id,
        marginal=marginal,
        spans=cover(first, end),
        most_uncounted=MOST_UNCOUNTED,
        words=words,
        distributions=distributions,
        is_summed=is_summed,
        is_complete=state is not None and counted_from is None,
    )
    found.is_behind = stored.is_behind
    for key, rows in stored.figures.items():
        pieces = ((first_quarter(width, period), counts) for width, period, counts in rows)
        found.pieces.setdefault(key, []).extend(pieces)
    within = (_within(change, first, end) for change in stored.uncounted)
    _take(found, tally(within, only=marginal), distributions)
    return _of_words(found, words)


def _of_words(found: RangeFigures, words: Sequence[str] | None) -> RangeFigures:
    if words is not None:
        found.pieces = {key: told for key, told in found.pieces.items() if key[0] in words}
    return found


def first_words(project_id: int, marginal: Marginal) -> tuple[str, ...] | None:
    """The words that keys of a marginal of calls begin with, in order; None where not all calls are
    counted, or more wait than are read. Two queries."""
    state = RollupState.objects.filter(project_id=project_id).first()
    if state is None or counted_down_to(state, marginal) is not None:
        return None
    keys, waiting = read_keys(
        project_id=project_id, marginal=marginal, most_uncounted=MOST_UNCOUNTED
    )
    if waiting is None:
        return None
    found = {key[0] for key in (*keys, *new_keys(waiting, marginal))}
    return tuple(sorted(each for each in found if each))


def held_calls(*, project_id: int) -> int | None:
    """How many calls a project holds now; None where not all of them are counted yet.

    Rollups also tell of calls that retention has deleted: those are left out. Four queries at most.
    """
    state = RollupState.objects.filter(project_id=project_id).first()
    kept_from = None if state is None or state.kept_from is None else moment_of(state.kept_from)
    found = figures(project_id=project_id, marginal=Marginal.ALL, since=kept_from, until=None)
    if found is None or found.is_behind:
        return None
    counted = sum(counts[CALLS] for counts in found.totals().values())
    if kept_from is None:
        return counted
    # Of the quarter-hour of retention's line some are left.
    return counted + Call.objects.filter(project_id=project_id, started_at__lt=kept_from).count()


def waiting(*, now: datetime) -> Waiting:
    """What all projects together have waiting. Two queries, over what waits."""
    told = UncountedCalls.objects.aggregate(calls=Sum("calls"), rows=Count("id"), oldest=Min("at"))
    oldest = told["oldest"]
    return Waiting(
        calls=told["calls"] or 0,
        transactions=told["rows"],
        age_s=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        projects=RollupState.unfinished().count(),
    )


def counted_down_to(state: RollupState, marginal: Marginal = Marginal.ALL) -> int | None:
    """The quarter-hour from which on a project's calls, fits or plans are in a marginal; None: all
    of them are.

    Those from before there were rollups, or this marginal, are counted from the newest back.
    """
    if state.is_complete and state.version >= version_with(marginal):
        return None
    return _NEVER if state.rebuilt_down_to is None else state.rebuilt_down_to


def countings() -> tuple[Counting, ...]:
    """The projects that have calls from before there were rollups, by name. Two queries for each
    and one."""
    left = RollupState.unfinished().select_related("project")
    return tuple(_counting(state) for state in left.order_by("project__name", "project_id"))


def _counting(state: RollupState) -> Counting:
    calls = Call.objects.filter(project_id=state.project_id)
    reached = state.rebuilt_down_to
    return Counting(
        project=state.project.name,
        down_to=None if reached is None else moment_of(reached),
        first_call_at=calls.aggregate(at=Min("started_at"))["at"],
    )


class _Cut(NamedTuple):
    """A quarter-hour that is only partly in a range, and that part of it."""

    quarter: int
    since: datetime
    until: datetime


def _whole(since: datetime | None, until: datetime | None) -> tuple[int | None, int | None]:
    """The quarter-hours that lie in a range with all they hold: the first, and that after them."""
    first = None
    if since is not None:
        first = quarter_of(since)
        first += since > moment_of(first)
    return first, None if until is None else quarter_of(until)


def _cut(since: datetime | None, until: datetime | None) -> Iterator[_Cut]:
    """The quarter-hours that a range begins or ends in the middle of: two at most."""
    if since is not None and until is not None and since >= until:
        return
    for quarter in sorted({quarter_of(each) for each in (since, until) if each is not None}):
        start, end = moment_of(quarter), moment_of(quarter + 1)
        inside = _Cut(quarter, max(start, since or start), min(end, until or end))
        if start < inside.until and (inside.since, inside.until) != (start, end):
            yield inside


def _read(project_id: int, marginal: Marginal, cut: _Cut) -> Sequence[Facts]:
    """The facts of an edge's calls, fits or plans; one more than MOST_EDGE_CALLS at most."""
    if marginal in OF_FITS:
        fits = Fit.objects.filter(
            project_id=project_id, created_at__gte=cut.since, created_at__lt=cut.until
        )
        return fit_facts_of(fits[: MOST_EDGE_CALLS + 1])
    if marginal in OF_PLANS:
        plans = PlanRecord.objects.filter(
            project_id=project_id, started_at__gte=cut.since, started_at__lt=cut.until
        )
        return plan_facts_of(plans.exclude(outcome=RUNNING)[: MOST_EDGE_CALLS + 1])
    calls = Call.objects.filter(
        project_id=project_id, started_at__gte=cut.since, started_at__lt=cut.until
    )
    return facts_of(calls[: MOST_EDGE_CALLS + 1])


def _take(
    found: RangeFigures, places: Mapping[Place, Counts], distributions: Collection[Distribution]
) -> None:
    for (quarter, _, key), counts in places.items():
        found.pieces.setdefault(key, []).append((quarter, with_only(counts, distributions)))


def _within(change: Change, first: int | None, end: int | None) -> Change:
    """A change without what is not in the quarter-hours from `first` to before `end`."""
    before, after = change
    return _if_within(before, first, end), _if_within(after, first, end)


def _if_within(facts: Facts | None, first: int | None, end: int | None) -> Facts | None:
    if facts is None or (first is not None and facts.quarter < first):
        return None
    return None if end is not None and facts.quarter >= end else facts
