"""Noting how far recorder and exporters are behind, so that a rule on lag can be tried on the last
week before it is switched on.

Only changes are noted, and once a day that there was none: a quiet installation has a row a day,
one that is behind all week 10,000 for its recorder and as many for each exporter.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from helmdash.operations.database.transactions import write
from helmdash.queries import ledger
from helmdash.queries.exporting import export_states
from helmdash.records.models import LagSample

# As often as rules on lag are looked at.
EVERY: Final = timedelta(minutes=1)
# The least that a rule on export lag can ask for: of less nothing has to be known.
_LEAST_LAG_S: Final = 60
_AT_LEAST_EACH: Final = timedelta(days=1)
# The week that a preview goes through, and what was known when it began.
KEPT: Final = timedelta(days=9)


def note(*, now: datetime) -> int:
    """Note what has changed since the last time; how many rows. Forgets what is too old."""
    fresh = [row for row in _seen(now) if _is_news(row)]
    write(lambda: LagSample.objects.bulk_create(fresh))
    write(LagSample.objects.filter(at__lt=now - KEPT).delete)
    return len(fresh)


def _seen(now: datetime) -> Iterator[LagSample]:
    yield LagSample(exporter_id=None, at=now, waiting=ledger.totals().waiting)
    for each in export_states():
        is_behind = each.enabled and each.lag_s(now) >= _LEAST_LAG_S
        yield LagSample(
            exporter_id=each.id,
            at=now,
            waiting=each.waiting if is_behind else 0,
            since=each.since if is_behind else None,
        )


def _is_news(row: LagSample) -> bool:
    before = _before(row.exporter_id)
    if before is None or row.at - before.at >= _AT_LEAST_EACH:
        return True
    # What an exporter waits for grows with every call; since when is what its lag is told by.
    if row.exporter_id is None:
        return before.waiting != row.waiting
    return before.since != row.since


def _before(exporter_id: int | None) -> LagSample | None:
    rows = LagSample.objects.order_by("-at", "-id")
    if exporter_id is None:
        return rows.filter(exporter__isnull=True).first()
    return rows.filter(exporter_id=exporter_id).first()
