"""Rollups outlive the calls they count, so that a month can be held against last year's."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db import connection

from helmdash.core.rollups.figures import Marginal
from helmdash.core.rollups.periods import Width, period_of, quarter_of
from helmdash.operations.database.steps import StepSize
from helmdash.operations.database.transactions import write_and_pause
from helmdash.records.models import Rollup

# A year, and the month it is compared with.
KEPT_LONGER = timedelta(days=400)


def delete_before(project_id: int, before: datetime, batch: int) -> int:
    """Delete the rollups of periods that ended KEPT_LONGER before a moment; how many."""
    line = quarter_of(before - KEPT_LONGER)
    deleted, size = 0, StepSize(batch)
    for width in Width:
        rows = Rollup.objects.filter(
            project_id=project_id,
            marginal__in=[each.value for each in Marginal],
            width=width.value,
            period__lt=period_of(width, line),
        )
        while ids := list(rows.values_list("id", flat=True)[: size.rows]):
            some = Rollup.objects.filter(project_id=project_id, id__in=ids)
            write_and_pause(size.timed(partial(some._raw_delete, connection.alias)))
            deleted += len(ids)
    return deleted
