"""What rules on lag would have said, by how far recorder and exporters were behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from helmdash.core.alerts.preview import PastChange, turning
from helmdash.core.alerts.rules import RuleSettings
from helmdash.queries.exporting import exporters_told_to
from helmdash.records.models import LagSample

RECORDER_PATH = "/settings/recorder/"


@dataclass(frozen=True, slots=True)
class PastLags:
    """Changes from a moment on; known_from: of before this one nothing is stored."""

    changes: list[PastChange]
    known_from: datetime | None


def recorder_lags(settings: RuleSettings, *, since: datetime, now: datetime) -> PastLags:
    """When so many calls waited to be stored. One query."""
    rows = list(LagSample.objects.filter(exporter=None, at__lte=now).order_by("at", "id"))
    least = settings.threshold or 1
    told = (
        (row.at, f"{row.waiting:,} calls wait to be stored" if row.waiting >= least else None)
        for row in rows
    )
    changes = turning(told, subject="recorder", path=RECORDER_PATH)
    return _within(changes, [rows], since, now)


def export_lags(
    project_id: int, settings: RuleSettings, *, since: datetime, now: datetime
) -> PastLags:
    """When calls waited for so long to be exported, of the exporters that the project may know of.
    Two queries."""
    names = dict(exporters_told_to(project_id).values_list("id", "name"))
    by_exporter: defaultdict[int, list[LagSample]] = defaultdict(list)
    rows = LagSample.objects.filter(exporter_id__in=names, at__lte=now).order_by("at", "id")
    for row in rows:
        if row.exporter_id is not None:
            by_exporter[row.exporter_id].append(row)
    least = timedelta(minutes=settings.minutes or 0)
    changes = [
        change
        for each, found in by_exporter.items()
        for change in turning(_told(names[each], found, least, now), subject=names[each])
    ]
    return _within(changes, list(by_exporter.values()), since, now)


def _told(
    name: str, rows: Sequence[LagSample], least: timedelta, now: datetime
) -> Iterator[tuple[datetime, str | None]]:
    """Between two rows the oldest call goes on waiting."""
    for row, later in pairwise([*rows, None]):
        if row is None or row.since is None:
            if row is not None:
                yield row.at, None
            continue
        fires_at = max(row.at, row.since + least)
        if fires_at > row.at:
            yield row.at, None
        if fires_at < (later.at if later is not None else now):
            yield fires_at, f"{name}: calls wait to be exported"


def _within(
    changes: Sequence[PastChange],
    series: Sequence[Sequence[LagSample]],
    since: datetime,
    now: datetime,
) -> PastLags:
    """Those of the time looked at. What fired when it began and goes on is its first change, as of
    a rule that is switched on then."""
    before: dict[str, PastChange] = {}
    found: list[PastChange] = []
    for change in sorted(changes, key=lambda each: each.at):
        if change.at < since:
            before[change.subject] = change
        else:
            found.append(change)
    open_then = [
        PastChange(subject=each.subject, title=each.title, at=since, is_firing=True, path=each.path)
        for each in before.values()
        if each.is_firing
    ]
    first = max((rows[0].at for rows in series if rows), default=now)
    return PastLags([*open_then, *found], first if first > since else None)
