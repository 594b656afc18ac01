"""In which months calls can fit two filters at once, as the rollups tell it.

An index serves one of them, and the other is tried on each of its calls: where the two seldom or
never meet, on all there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from helmdash.core.rollups.figures import Counts, Marginal, add, tally
from helmdash.core.rollups.periods import (
    Span,
    Width,
    first_quarter,
    moment_of,
    period_of,
    quarter_of,
)
from helmdash.queries.calls.terms import ANY_CAUSE
from helmdash.queries.rollups import MOST_UNCOUNTED, counted_down_to
from helmdash.records.models import Call, RollupState
from helmdash.records.rollups.rollup_rows import read_spans

# Columns that figures are kept by, and those that each figure tells of. Of both the first that is
# asked for is taken: usually the rarest.
_KEPT_BY: Final[Mapping[str, Marginal]] = {
    "model_key": Marginal.MODEL,
    "cause": Marginal.CAUSE,
    "finish_reason": Marginal.FINISH_REASON,
    "client_name": Marginal.CLIENT,
    "purpose": Marginal.PURPOSE,
    "level": Marginal.LEVEL,
}
_TOLD_BY: Final[Mapping[str, str]] = {"cause": "c", "finish_reason": "f", "level": "l"}


def within_joint_months(
    rows: QuerySet[Call],
    project_id: int,
    values: Mapping[str, Sequence[str]],
    *,
    since: datetime | None,
    until: datetime | None,
) -> QuerySet[Call]:
    """The rows, which have one of these values in each of these columns, bounded to the months that
    have some.

    values: by column; ANY_CAUSE as a cause: every call that failed. Of columns that are not known
    here nothing is said. Two queries where two of them are known. Rows as they are where rollups
    cannot tell, for calls wait to be counted.
    """
    is_any = ANY_CAUSE in values.get("cause", ())
    known = [each for each in _KEPT_BY if values.get(each)]
    kept = next((each for each in known if each != "cause" or not is_any), None)
    told = next((each for each in _TOLD_BY if each != kept and values.get(each)), None)
    if kept is None or told is None:
        return rows
    found = _months(project_id, _KEPT_BY[kept], values[kept], since, until)
    if found is None:
        return rows
    head = f"{_TOLD_BY[told]}:"
    words = {f"{head}{value}" for value in values[told]}
    is_any = is_any and told == "cause"
    months = [
        month
        for month, counts in found.items()
        if any(
            count > 0 and (word in words or (is_any and word.startswith(head)))
            for word, count in counts.items()
        )
    ]
    if not months:
        return rows.none()
    first, end = _begin(min(months)), _begin(max(months) + 1)
    return rows.filter(started_at__gte=first, started_at__lt=end)


def _months(
    project_id: int,
    marginal: Marginal,
    values: Sequence[str],
    since: datetime | None,
    until: datetime | None,
) -> dict[int, Counts] | None:
    """The figures of some values by month, of those that a range touches; None: they are not whole.
    Of a model by whatever purpose and variant."""
    state = RollupState.objects.filter(project_id=project_id).first()
    if state is not None and counted_down_to(state, marginal) is not None:
        return None
    first = None if since is None else _month(quarter_of(since))
    end = None if until is None else _month(quarter_of(until)) + 1
    stored = read_spans(
        project_id=project_id,
        marginal=marginal,
        spans=[Span(Width.MONTH, first, end)],
        most_uncounted=MOST_UNCOUNTED,
        words=values,
        heads=list(_TOLD_BY.values()),
    )
    if stored.is_behind:
        return None
    found: dict[int, Counts] = {}
    for key, periods in stored.figures.items():
        for _, month, counts in periods if key[0] in values else ():
            add(found.setdefault(month, {}), counts)
    for (quarter, _, key), counts in tally(stored.uncounted, only=marginal).items():
        if key[0] in values:
            add(found.setdefault(_month(quarter), {}), counts)
    return found


def _month(quarter: int) -> int:
    return period_of(Width.MONTH, quarter)


def _begin(month: int) -> datetime:
    return moment_of(first_quarter(Width.MONTH, month))
