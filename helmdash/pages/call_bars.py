"""The bars above lists of calls: how full they were, over the range of the list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from helmdash.core.budgets.levels import BY_SEVERITY, LEVELS
from helmdash.pages.parts.histogram import Histogram, Mark, histogram
from helmdash.queries import marks
from helmdash.queries.calls import CallFilters
from helmdash.queries.series import Split, call_series

_LEVELS: Final = {
    level.value: (LEVELS[level].css_class, LEVELS[level].word) for level in BY_SEVERITY
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBars:
    """A histogram; None where there is nothing to draw. is_behind: the newest calls are not in
    it."""

    drawing: Histogram | None
    is_behind: bool


def call_bars(*, project_id: int, filters: CallFilters, now: datetime, zone: tzinfo) -> CallBars:
    """The calls that fit the filters of a list, by level (helmdash.queries.series)."""
    found = call_series(project_id=project_id, filters=filters, now=now, split=Split.LEVEL)
    drawing = histogram(
        found.bars,
        words=_LEVELS,
        noun="calls",
        zone=zone,
        marks=_marks(project_id, found.bars[0].since, found.bars[-1].until) if found.bars else (),
    )
    return CallBars(drawing=drawing, is_behind=found.is_behind)


def _marks(project_id: int, since: datetime, until: datetime) -> tuple[Mark, ...]:
    """What changed the rules within a range."""
    return tuple(
        Mark(at=each.at, kind=each.kind.value, text=each.text)
        for each in marks.marks(project_id=project_id, since=since, until=until)
    )
