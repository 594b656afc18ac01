"""What fails now: the calls of a range that gave nothing usable, by cause and model.

Counted by rollups, so that a range costs the same however many calls it has; when the first and the
newest call of a group failed is looked up among the calls of a single period of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.calls.failures import FailureCause
from helmdash.core.rollups.figures import Marginal, under
from helmdash.core.rollups.periods import moment_of
from helmdash.core.text.query_terms import any_of, term_text
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.rollups import RangeFigures
from helmdash.records.failed_times import FailedIn, failed_times
from helmdash.records.models import FailureMark

# More groups than a person reads; the page of calls has the rest.
MOST_GROUPS: Final = 12


class GroupState(StrEnum):
    """What somebody said of a group last."""

    OPEN = "open"
    RESOLVED = "resolved"
    MUTED = "muted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMark:
    """That word, with who said it and when; until: when a mute ends."""

    state: GroupState
    by: str
    at: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """A model's calls that failed for one cause.

    calls: so many in the range, `before` in the one of the same length before it (None: it is not
    known, or the range has no beginning). first_at, latest_at: the first and the newest of the
    range; known to a period of the rollups where the calls are gone. mark: what was said of it
    last; None: nothing, or that it is open. spellings: how these calls named it.
    """

    cause: FailureCause
    model_key: str
    calls: int
    before: int | None
    first_at: datetime
    latest_at: datetime
    mark: GroupMark | None = None
    spellings: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """The query of the list of calls that has just these, in the same range."""
        return query_of(self.cause.value, self.model_key, self.spellings)

    @property
    def has_returned(self) -> bool:
        """Whether it was resolved, and a call failed so again."""
        mark = self.mark
        is_resolved = mark is not None and mark.state is GroupState.RESOLVED
        return mark is not None and is_resolved and self.latest_at > mark.at


def query_of(cause: str, model_key: str, spellings: Sequence[str]) -> str:
    """The query of the list of calls that has just those of a group. By the names that are counted
    together: the filter by model takes any spelling, of other models' ids too, and a call that told
    its provider has another key than its name alone."""
    names = any_of("spelt", spellings) or term_text("key", model_key)
    return f"cause:{cause} {names}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """The groups of a range, those with the most calls first.

    settled: resolved, and none failed since, or muted. more: further groups, which are not looked
    at. calls: of all groups. has_rollups: False where the calls from before there were rollups are
    still to be counted. is_rounded: an edge has too many calls to read, and is counted to its
    quarter-hour.
    """

    open: tuple[FailureGroup, ...] = ()
    settled: tuple[FailureGroup, ...] = ()
    more: int = 0
    calls: int = 0
    has_rollups: bool = True
    is_rounded: bool = False


class _Group(NamedTuple):
    cause: str
    model_key: str


@dataclass(slots=True)
class _Period:
    """A period with calls of a group, as a quarter, and the names that they were asked by in it."""

    quarter: int
    spellings: set[str]


@dataclass(slots=True)
class _Seen:
    """Of a group: its calls, the earliest and the latest period that has one, and all names."""

    calls: int = 0
    first: _Period | None = None
    latest: _Period | None = None
    spellings: set[str] = field(default_factory=set)

    def note(self, quarter: int, spelling: str) -> None:
        """That this period has a call of this name."""
        if self.first is None or quarter < self.first.quarter:
            self.first = _Period(quarter, {spelling})
        elif quarter == self.first.quarter:
            self.first.spellings.add(spelling)
        if self.latest is None or quarter > self.latest.quarter:
            self.latest = _Period(quarter, {spelling})
        elif quarter == self.latest.quarter:
            self.latest.spellings.add(spelling)


def failing(
    *,
    project_id: int,
    now: datetime,
    since: datetime | None,
    until: datetime | None = None,
    said_by: datetime | None = None,
) -> Failing:
    """What failed from `since` to before `until`; None: without that bound. Eleven queries at most,
    and some more after an edit of a budget.

    said_by: what people said of groups after this moment does not count; None: all does.
    """
    found = _figures(project_id, since, until)
    if found is None:
        return Failing(has_rollups=False)
    table = budgets.table(project_id=project_id)
    groups = _grouped(table, found)
    if not groups:
        return Failing(is_rounded=found.is_rounded)
    before = _before(project_id, table, since, min(until or now, now))
    shown = sorted(groups, key=lambda each: (-groups[each].calls, each))[:MOST_GROUPS]
    marks = _marks(project_id, table, shown, said_by)
    times = _times(project_id, {each: groups[each] for each in shown}, since, until)
    all_of_them = [
        FailureGroup(
            cause=FailureCause(each.cause),
            model_key=each.model_key,
            calls=groups[each].calls,
            before=None if before is None else before[each].calls if each in before else 0,
            first_at=times[each][0],
            latest_at=times[each][1],
            mark=marks.get(each),
            spellings=tuple(sorted(groups[each].spellings)),
        )
        for each in shown
    ]
    settled = tuple(each for each in all_of_them if _is_settled(each, now))
    return Failing(
        open=tuple(each for each in all_of_them if each not in settled),
        settled=settled,
        more=len(groups) - len(shown),
        calls=sum(each.calls for each in groups.values()),
        is_rounded=found.is_rounded,
    )


def _before(
    project_id: int, table: BudgetTable, since: datetime | None, end: datetime
) -> dict[_Group, _Seen] | None:
    """The groups of the range that is as long and ends where this one begins; None: there is none,
    or its calls are not counted yet."""
    if since is None or end <= since:
        return None
    try:
        start = since - (end - since)
    except OverflowError:  # before the first year
        return None
    found = _figures(project_id, start, since)
    return None if found is None else _grouped(table, found)


def _is_settled(group: FailureGroup, now: datetime) -> bool:
    mark = group.mark
    if mark is None:
        return False
    if mark.state is GroupState.MUTED:
        return mark.until is not None and now < mark.until
    return mark.state is GroupState.RESOLVED and not group.has_returned


def _figures(
    project_id: int, since: datetime | None, until: datetime | None
) -> RangeFigures | None:
    return rollups.figures(project_id=project_id, marginal=Marginal.CAUSE, since=since, until=until)


def _grouped(table: BudgetTable, found: RangeFigures) -> dict[_Group, _Seen]:
    """Causes have their calls by the models' names as they were spelt; spellings of one model are
    one group."""
    keys: dict[str, str] = {}
    groups: defaultdict[_Group, _Seen] = defaultdict(_Seen)
    for (cause,), pieces in found.pieces.items():
        for quarter, counts in pieces:
            for spelling, calls in under(counts, "s").items():
                key = keys.get(spelling) or keys.setdefault(spelling, table.key_of(spelling))
                seen = groups[_Group(cause, key)]
                seen.calls += calls
                seen.spellings.add(spelling)
                if calls > 0:
                    seen.note(quarter, spelling)
    return {group: seen for group, seen in groups.items() if seen.calls > 0}


def _times(
    project_id: int,
    groups: Mapping[_Group, _Seen],
    since: datetime | None,
    until: datetime | None,
) -> dict[_Group, tuple[datetime, datetime]]:
    """When the first and the newest call of each group started. One statement: for each of its
    names a step into the index of causes, within the range and within the period that has it.

    By names, as the groups are counted: a call that told who answered has a key of that upstream's.
    """
    first = _asked({group: seen.first for group, seen in groups.items()}, since, until)
    latest = _asked({group: seen.latest for group, seen in groups.items()}, since, until)
    told_first, told_latest = failed_times(
        project_id=project_id,
        first=[each for each, _ in first],
        latest=[each for each, _ in latest],
    )
    began, ended = _by_group(first, told_first), _by_group(latest, told_latest)
    return {group: (min(began[group]), max(ended[group])) for group in groups}


_Asked = list[tuple[FailedIn, _Group]]


def _asked(
    periods: Mapping[_Group, _Period | None], since: datetime | None, until: datetime | None
) -> _Asked:
    """What is looked for, with the group that it is of: at least one for each group."""
    asked: _Asked = []
    for group, period in periods.items():
        start = _within(period.quarter if period else 0, since)
        end = min(_after(start), until or _after(start))
        names = sorted(period.spellings) if period else [group.model_key]
        asked.extend((FailedIn(group.cause, name, start, end), group) for name in names)
    return asked


def _by_group(asked: _Asked, told: Iterable[datetime | None]) -> Mapping[_Group, list[datetime]]:
    """The moments found of each group; where none of its calls is left, when its period begins."""
    begins = {group: [each.since] for each, group in asked}
    found: defaultdict[_Group, list[datetime]] = defaultdict(list)
    for (_, group), at in zip(asked, told, strict=True):
        if at is not None:
            found[group].append(at)
    return {**begins, **found}


def _after(start: datetime) -> datetime:
    """A moment after the period that begins here, which is a month at most."""
    return min(start, _LAST) + _MONTH


_MONTH: Final = timedelta(days=31)
_LAST: Final = datetime.max.replace(tzinfo=UTC) - _MONTH


def _within(quarter: int, since: datetime | None) -> datetime:
    """When a period begins, as far as it is in the range."""
    start = moment_of(quarter)
    return start if since is None else max(start, since)


def _marks(
    project_id: int, table: BudgetTable, groups: Sequence[_Group], said_by: datetime | None
) -> dict[_Group, GroupMark]:
    """What was said last of each group; one that is open again has none. One query.

    By the name that each word's model has by now: an alias may have come since, and calls are
    grouped by it. People say little, so all words on these causes are read.
    """
    wanted = set(groups)
    rows = FailureMark.objects.filter(
        project_id=project_id, cause__in={each.cause for each in wanted}
    ).order_by("id")
    if said_by is not None:
        rows = rows.filter(at__lte=said_by)
    found: dict[_Group, GroupMark] = {}
    for row in rows:
        told = _Group(row.cause, row.model_key)
        group = told if told in wanted else _Group(row.cause, table.key_of(row.model_key))
        found[group] = GroupMark(
            state=GroupState(row.state), by=row.by or "", at=row.at, until=row.until
        )
    return {
        each: mark
        for each, mark in found.items()
        if each in wanted and mark.state is not GroupState.OPEN
    }
