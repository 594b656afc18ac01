"""How many calls there were over time, in bars: what the histograms above lists are drawn from.

`call_series` takes the filters of a list; `series` one marginal's words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from django.db.models import Min

from helmdash.core.calls.outcomes import outcome_of
from helmdash.core.rollups.facts import NO_VARIANT, OTHER, PURPOSES
from helmdash.core.rollups.figures import CALLS, Counts, Key, Marginal, add, tally, under
from helmdash.core.rollups.periods import (
    Span,
    Width,
    bars,
    first_quarter,
    moment_of,
    period_of,
    quarter_of,
)
from helmdash.queries import rollups
from helmdash.queries.calls.filters import CallFilters, looked_through, ways_to_find
from helmdash.queries.calls.terms import ANY_CAUSE
from helmdash.queries.distinct_values import model_keys
from helmdash.queries.lists.by_value import first_values
from helmdash.queries.lists.reach import Reach
from helmdash.records.models import Call, Rollup, RollupState
from helmdash.records.rollups.rollup_keys import key_end
from helmdash.records.rollups.rollup_rows import read_spans

# A bar of ten pixels on a wide screen.
MOST_BARS: Final = 120
# What is drawn at all (a quarter-hour, and after now): no call is from before 1970, none starts
# more than a day ahead, and bars over thousands of years would leave none to those with calls.
_EARLIEST: Final = 0
_MOST_AHEAD: Final = timedelta(days=366)
# Calls that are read one by one where filters are no marginal: some tens of milliseconds.
MOST_READ: Final = 5_000


Moment = tuple[datetime, str | None]
"""When a row was, and the word that it is told apart by; None: by none."""


class Split(StrEnum):
    """What the calls of a bar are told apart by: the heads of core.rollups.figures."""

    OUTCOME = "o"
    LEVEL = "l"
    CAUSE = "c"
    FINISH_REASON = "f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """One marginal's calls with one of some words: clients by name, models by their keys
    (queries.distinct_values.model_keys), and so on. words: None: all of them. fits: of these, what
    the rest of a key must say; None: anything. ends: as far as a stored key's end says it
    (records.rollups.rollup_keys.key_end)."""

    marginal: Marginal
    words: tuple[str, ...] | None = None
    fits: Callable[[Key], bool] | None = None
    ends: tuple[str, ...] = ()

    def has(self, key: Key) -> bool:
        """Whether figures under a key are of these."""
        is_one = self.words is None or key[0] in self.words
        return is_one and (self.fits is None or self.fits(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Calls that started from `since` to before `until`.

    calls: None where they are not known. parts: of these how many by word of the split; calls
    without such a word (a cause) are in no part. is_estimate: both are told from other calls'
    number.
    """

    since: datetime
    until: datetime
    calls: int | None
    parts: Mapping[str, int] = field(default_factory=dict)
    is_estimate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Bars of equal width (but for months), oldest first, without a gap; the first and the last
    reach over the range where it does not begin or end with them.

    is_behind: the newest calls are not added up yet. is_whole: no bar is unknown.
    """

    bars: tuple[Bar, ...]
    is_behind: bool

    @property
    def is_whole(self) -> bool:
        """Whether every bar is known."""
        return all(bar.calls is not None for bar in self.bars)

    @property
    def is_estimate(self) -> bool:
        """Whether any bar is an estimate."""
        return any(bar.is_estimate for bar in self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """Figures by pieces of time, oldest first, without a gap: the first quarter-hour, that after
    the last, and what was counted; None where it is not known."""

    pieces: tuple[tuple[int, int, Counts | None], ...]
    is_behind: bool


def series(
    *,
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    split: Split | None,
    only: Only | None = None,
) -> Series:
    """At most MOST_BARS bars of calls, from quarter-hours to years wide, that fill a range: exact,
    from rollups. Two queries, two more without `since`.

    since, until: None: from the first call on, up to now. only: calls of one marginal's words; a
    filter that is no marginal has no series here. split: None: only how many, for a
    third of the work. No bars where the range is empty or the project has no calls.
    """
    found = over_time(
        project_id=project_id,
        since=since,
        until=until,
        now=now,
        only=only or Only(marginal=Marginal.ALL),
        heads=() if split is None else (split.value,),
    )
    return Series(
        bars=tuple(_bar(first, after, told, split) for first, after, told in found.pieces),
        is_behind=found.is_behind,
    )


def over_time(
    *,
    project_id: int,
    since: datetime | None,
    until: datetime | None,
    now: datetime,
    only: Only,
    heads: tuple[str, ...] | None,
    most: int = MOST_BARS,
) -> OverTime:
    """The figures of the pieces that bars are drawn of, `most` at most, in the queries of `series`.
    heads: the calls and the words under these; None: all but distributions."""
    begin = _first_moment(project_id) if since is None else since
    if begin is None:
        return OverTime(pieces=(), is_behind=False)
    start, end = bounds(begin, until, now)
    if start >= end:
        return OverTime(pieces=(), is_behind=False)
    width, edges = bars(start, end, most=most)
    state = RollupState.objects.filter(project_id=project_id).first()
    known_from = None if state is None else rollups.counted_down_to(state, only.marginal)
    counts, is_behind = _counts(
        project_id,
        width,
        edges,
        only,
        heads=heads,
        is_complete=state is not None and known_from is None,
    )
    return OverTime(
        pieces=tuple(
            (first, after, told if known_from is None or first >= known_from else None)
            for (first, after), told in zip(pairwise(edges), counts, strict=True)
        ),
        is_behind=is_behind,
    )


def bounds(since: datetime, until: datetime | None, now: datetime) -> tuple[int, int]:
    """The quarter-hours that are drawn of a range: the first, and that after the last."""
    end = quarter_of(now) + 1 if until is None else _end_of(min(until, now + _MOST_AHEAD))
    return max(quarter_of(since), _EARLIEST), end


def call_series(*, project_id: int, filters: CallFilters, now: datetime, split: Split) -> Series:
    """Bars of the calls that fit the filters of a list, over the whole of its range.

    From rollups where no filter is given, or one that has a marginal: exact, in two queries, two
    more with a model and two more without `since`. Else the newest MOST_READ calls that fit are
    read (among MOST_TRIED, where a query's terms are tried on each), in seven queries more at most,
    and bars are exact down to the last one read. Where more fit, the bars before are estimates: of
    the calls that one filter with a marginal leaves (or of all), the share that fits is taken to be
    what it is among the newer ones.
    """
    only, is_all = _marginal_of(project_id, filters)
    wider = series(
        project_id=project_id,
        since=filters.since,
        until=filters.until,
        now=now,
        split=split,
        only=only,
    )
    return wider if is_all or not wider.bars else _narrowed(wider, only, project_id, filters, split)


def _marginal_of(project_id: int, filters: CallFilters) -> tuple[Only, bool]:
    """One of the filters as a marginal, and whether it is all that they say."""
    given = {
        each.name: getattr(filters, each.name)
        for each in fields(filters)
        if each.name not in ("since", "until") and getattr(filters, each.name) is not None
    }
    like = _like_models(project_id, given) if given and set(given) <= _OF_MODELS else None
    if like is not None:
        return like, True
    # The purposes that only some caller knows are no word of a marginal.
    known = {name: word for name, word in given.items() if (name, word) != ("purpose", OTHER)}
    name = next((name for name in _MARGINALS if known.get(name)), None)
    if name is None:
        return Only(marginal=Marginal.ALL), not given
    words: tuple[str, ...] | None = (given[name],)
    if name == "model":
        words = model_keys(project_id=project_id, model=given[name])
    if name == "cause" and given[name] == ANY_CAUSE:
        words = None
    if name == "client":
        words = (given[name].strip().lower(),)
    return Only(marginal=_MARGINALS[name], words=words), len(given) == 1


# What the keys of models' figures tell together.
_OF_MODELS: Final = frozenset({"model", "purpose", "variant"})


def _like_models(project_id: int, given: Mapping[str, str]) -> Only | None:
    """Model, purpose and variant by the keys of models; None where one filter has a marginal of its
    own, or asks for a purpose that is counted among others there."""
    purpose, variant, model = (given.get(name) for name in ("purpose", "variant", "model"))
    is_known = purpose is None or purpose == OTHER or purpose in PURPOSES
    if not is_known or (len(given) == 1 and variant is None and purpose != OTHER):
        return None
    told = "" if variant == NO_VARIANT else variant

    def fits(key: Key) -> bool:
        return purpose in (None, key[1]) and told in (None, key[2])

    words = None if model is None else model_keys(project_id=project_id, model=model)
    ends: tuple[str, ...] = ()
    if told is not None:
        ends = (key_end(told) if purpose is None else key_end(purpose, told),)
    return Only(marginal=Marginal.MODEL, words=words, fits=fits, ends=ends)


# Those that leave fewest calls first.
_MARGINALS: Final = {
    "cause": Marginal.CAUSE,
    "client": Marginal.CLIENT,
    "model": Marginal.MODEL,
    "purpose": Marginal.PURPOSE,
    "size": Marginal.SIZE,
    "finish_reason": Marginal.FINISH_REASON,
    "level": Marginal.LEVEL,
    "lane": Marginal.LANE,
}


def _narrowed(
    wider: Series, only: Only, project_id: int, filters: CallFilters, split: Split
) -> Series:
    """The same bars with those calls only that fit all filters."""
    whole = replace(filters, since=wider.bars[0].since, until=wider.bars[-1].until)
    newest, looked = _read(project_id, whole, split)
    exact, seen = count_rows(wider.bars, newest[:MOST_READ])
    if len(newest) > MOST_READ:
        counted_from, before = newest[MOST_READ - 1][0], newest[MOST_READ][0]
    elif looked is not None:
        counted_from = before = looked.last[0]
    else:
        return Series(bars=exact, is_behind=False)
    base = _calls_of(only, project_id, since=counted_from, until=whole.until)
    estimated = estimate_before(before, exact, wider.bars, seen, base)
    return Series(bars=estimated, is_behind=wider.is_behind)


def count_rows(
    bars: Sequence[Bar], rows: Iterable[Moment]
) -> tuple[tuple[Bar, ...], Counter[str | None]]:
    """The same bars with so many of the rows as are in each, and how many of each word these are
    together."""
    starts = [bar.since for bar in bars]
    told: list[Counter[str | None]] = [Counter() for _ in starts]
    for at, word in rows:
        if starts and starts[0] <= at < bars[-1].until:
            told[bisect_right(starts, at) - 1][word] += 1
    exact = tuple(
        replace(bar, calls=words.total(), parts=_parts(words))
        for bar, words in zip(bars, told, strict=True)
    )
    return exact, sum(told, Counter())


def with_rows(bars: Sequence[Bar], rows: Iterable[Moment]) -> tuple[Bar, ...]:
    """The same bars with some rows more; those that are not known stay so."""
    more, _ = count_rows(bars, rows)
    return tuple(
        bar
        if bar.calls is None or not each.calls
        else replace(
            bar,
            calls=bar.calls + each.calls,
            parts=dict(Counter(bar.parts) + Counter(each.parts)),
        )
        for bar, each in zip(bars, more, strict=True)
    )


def estimate_before(
    at: datetime,
    exact: Sequence[Bar],
    wider: Sequence[Bar],
    seen: Mapping[str | None, int],
    base: int,
) -> tuple[Bar, ...]:
    """The bars whose rows were all counted, and estimates up to that of the first row, at `at`,
    that was not.

    wider: the same bars with all calls. An estimate takes the share of a bar's calls that is among
    `base` calls of those that were counted (`seen`); unknown without any.
    """
    known = bisect_right([bar.since for bar in exact], at)
    return (*(_estimate(bar, seen, base) for bar in wider[:known]), *exact[known:])


def _calls_of(only: Only, project_id: int, *, since: datetime, until: datetime | None) -> int:
    """How many calls of a marginal's words there are; 0 where that is not known."""
    found = rollups.figures(project_id=project_id, marginal=only.marginal, since=since, until=until)
    totals = {} if found is None else found.totals()
    return sum(
        counts[CALLS]
        for key, counts in totals.items()
        if only.words is None or key[0] in only.words
    )


def _read(project_id: int, filters: CallFilters, split: Split) -> tuple[list[Moment], Reach | None]:
    """When the newest calls that fit started, and their words; one more than are counted. And how
    far they were looked for."""
    fitting, looked = looked_through(project_id, filters)
    rows = fitting.order_by("-started_at", "-id")
    ways = ways_to_find(rows, project_id, filters.q)
    columns = ("started_at", *_COLUMNS[split])
    found = first_values(rows, "started_at", MOST_READ + 1, columns, ways=ways)
    return [(at, _word(split, told)) for at, *told in found], looked


_COLUMNS: Final = {
    Split.OUTCOME: ("cause", "status"),
    Split.LEVEL: ("level",),
    Split.CAUSE: ("cause",),
    Split.FINISH_REASON: ("finish_reason",),
}


def _word(split: Split, columns: Sequence[str]) -> str | None:
    if split is Split.OUTCOME:
        return outcome_of(cause=columns[0], status=columns[1]).value
    # As rollups have them: a call without a cause is in no part.
    return columns[0] or (None if split is Split.CAUSE else "")


def _parts(words: Mapping[str | None, int]) -> dict[str, int]:
    return {word: rows for word, rows in words.items() if word is not None and rows}


def _estimate(bar: Bar, seen: Mapping[str | None, int], base: int) -> Bar:
    if bar.calls is None or not base:
        return Bar(since=bar.since, until=bar.until, calls=None)
    words = {word: round(bar.calls * rows / base) for word, rows in seen.items()}
    return replace(bar, calls=sum(words.values()), parts=_parts(words), is_estimate=True)


def _first_moment(project_id: int) -> datetime | None:
    """A moment at or before the project's first call; None where it has none."""
    rows = Rollup.objects.filter(project_id=project_id, marginal=Marginal.ALL.value)
    day = rows.filter(width=Width.DAY.value).aggregate(first=Min("period"))["first"]
    counted = None if day is None else moment_of(first_quarter(Width.DAY, day))
    calls = Call.objects.filter(project_id=project_id)
    # Only what is older than all that is counted: its months are few, those of all calls many.
    calls = calls if counted is None else calls.filter(started_at__lt=counted)
    first: datetime | None = calls.aggregate(at=Min("started_at"))["at"]
    return counted if first is None else first


def _end_of(moment: datetime) -> int:
    """The first quarter-hour that begins at a moment or later."""
    quarter = quarter_of(moment)
    return quarter + (moment > moment_of(quarter))


def _counts(
    project_id: int,
    width: Width,
    edges: Sequence[int],
    only: Only,
    *,
    heads: tuple[str, ...] | None,
    is_complete: bool,
) -> tuple[list[Counts], bool]:
    """The figures of each bar under some heads, and whether more waits to be counted than was read.
    is_complete: all calls are counted."""
    stored = read_spans(
        project_id=project_id,
        marginal=only.marginal,
        spans=[Span(width, period_of(width, edges[0]), period_of(width, edges[-1]))],
        most_uncounted=rollups.MOST_UNCOUNTED,
        words=only.words,
        fits=only.has,
        heads=heads,
        ends=only.ends,
        is_complete=is_complete,
    )
    found: list[Counts] = [{} for _ in edges[1:]]
    for rows in stored.figures.values():
        for _, period, counts in rows:
            add(found[bisect_right(edges, first_quarter(width, period)) - 1], counts)
    for (quarter, _, key), counts in tally(stored.uncounted, only=only.marginal).items():
        if edges[0] <= quarter < edges[-1] and only.has(key):
            add(found[bisect_right(edges, quarter) - 1], counts)
    return found, stored.is_behind


def _bar(first: int, after: int, counts: Counts | None, split: Split | None) -> Bar:
    return Bar(
        since=moment_of(first),
        until=moment_of(after),
        calls=None if counts is None else counts.get(CALLS, 0),
        parts={} if counts is None or split is None else under(counts, split),
    )
