"""The bars above lists: what there was of them over their range, told apart by what matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Final

from helmdash.core.budgets.levels import BY_SEVERITY, LEVELS
from helmdash.pages.parts import words
from helmdash.pages.parts.charts.histogram import Histogram, Mark, histogram
from helmdash.queries import marks, plans
from helmdash.queries.calls import series
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.list_series import list_series
from helmdash.queries.calls.series import Series, Split, call_series
from helmdash.queries.conversations import over_time
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TrimFilters, TrimOutcome
from helmdash.queries.fitting.trims import TrimPage
from helmdash.queries.plans import NewestPlans

# What the parts of a bar are called and drawn as, from below upwards.
Words = Mapping[str, tuple[str, str]]
_LEVELS: Final[Words] = {
    level.value: (LEVELS[level].css_class, LEVELS[level].word) for level in BY_SEVERITY
}
_TRIMS: Final[Words] = {
    TrimOutcome.OVER.value: ("is-critical", "Too large even so"),
    TrimOutcome.CUT.value: ("is-caution", "Cut"),
    TrimOutcome.WHOLE.value: ("is-healthy", "Nothing cut"),
}
_PLANS: Final[Words] = {
    outcome: ("is-gap" if outcome == "gap" else LEVELS[level].css_class, word)
    for outcome in ("failed", "partial", "gap", "running", "ok")
    for level, word in (words.outcome(outcome),)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBars:
    """A histogram; None where there is nothing to draw. noun: what it counts. is_behind: the newest
    calls are not in it. most: so many of the newest are counted, what is before is estimated.
    is_wider: the first or the last bar also counts what lies outside the range.
    """

    drawing: Histogram | None
    noun: str
    is_behind: bool
    most: int
    is_wider: bool = False

    @property
    def counted(self) -> str:
        """What it counts, as the sum of all bars has it."""
        is_one = self.drawing is not None and self.drawing.total == 1
        return self.noun.removesuffix("s") if is_one else self.noun


def call_bars(*, project_id: int, filters: CallFilters, now: datetime, zone: tzinfo) -> ListBars:
    """The calls that fit the filters of their list, by level."""
    found = call_series(project_id=project_id, filters=filters, now=now, split=Split.LEVEL)
    drawn = _drawn(found, project_id, zone, words=_LEVELS, noun="calls", most=series.MOST_READ)
    return replace(drawn, is_wider=_is_wider(found, filters.since, filters.until))


def conversation_bars(
    *, project_id: int, filters: ConversationFilters, now: datetime, zone: tzinfo
) -> ListBars:
    """The conversations that fit the filters of their list, by level, at their newest call."""
    newest = over_time.newest_moments(project_id=project_id, filters=filters)
    found = list_series(
        newest,
        project_id=project_id,
        since=filters.since,
        until=filters.until,
        now=now,
        first_at=partial(over_time.first_moment, project_id=project_id),
    )
    noun = "conversations"
    return _drawn(found, project_id, zone, words=_LEVELS, noun=noun, most=newest.most)


def plan_bars(
    newest: NewestPlans,
    *,
    project_id: int,
    filters: Mapping[str, Any],
    now: datetime,
    zone: tzinfo,
) -> ListBars:
    """The plans that fit the filters of their list, by outcome."""
    counted = (
        plans.plan_series(project_id=project_id, now=now, **filters) if newest.is_sample else None
    )
    found = counted or list_series(
        newest.moments,
        project_id=project_id,
        since=filters["since"],
        until=filters["until"],
        now=now,
        first_at=partial(plans.first_moment, project_id=project_id),
    )
    drawn = _drawn(found, project_id, zone, words=_PLANS, noun="plans", most=plans.MOST_READ)
    is_wider = counted is not None and _is_wider(counted, filters["since"], filters["until"])
    return replace(drawn, is_wider=is_wider)


def trim_bars(
    page: TrimPage, *, project_id: int, filters: TrimFilters, now: datetime, zone: tzinfo
) -> ListBars:
    """The fits that were read for the first page of their list, by what they came to."""
    found = list_series(
        page.newest,
        project_id=project_id,
        since=filters.since,
        until=filters.until,
        now=now,
        first_at=partial(trims.first_moment, project_id=project_id),
    )
    return _drawn(found, project_id, zone, words=_TRIMS, noun="fits", most=trims.MOST_READ)


def _is_wider(found: Series, since: datetime | None, until: datetime | None) -> bool:
    """Whether bars, which rollups fill as a whole, begin before a range or end after it."""
    if not found.bars:
        return False
    begins_before = since is not None and found.bars[0].since < since
    return begins_before or (until is not None and found.bars[-1].until > until)


def _drawn(
    found: Series, project_id: int, zone: tzinfo, *, words: Words, noun: str, most: int
) -> ListBars:
    drawing = histogram(
        found.bars,
        words=words,
        noun=noun,
        zone=zone,
        marks=_marks(project_id, found.bars[0].since, found.bars[-1].until) if found.bars else (),
    )
    return ListBars(drawing=drawing, noun=noun, is_behind=found.is_behind, most=most)


def _marks(project_id: int, since: datetime, until: datetime) -> tuple[Mark, ...]:
    """What changed the rules within a range."""
    return tuple(
        Mark(at=each.at, kind=each.kind.value, text=each.text)
        for each in marks.marks(project_id=project_id, since=since, until=until)
    )
