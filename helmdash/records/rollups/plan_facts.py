"""Facts of plans out of their rows (core.rollups.plan_facts)."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from helmdash.core.rollups.periods import quarter_of
from helmdash.core.rollups.plan_facts import RUNNING, PlanFacts
from helmdash.records.models import PlanRecord

COLUMNS: Final = ("started_at", *PlanFacts._fields[1:])


def plan_facts_of(rows: QuerySet[PlanRecord]) -> list[PlanFacts]:
    """Of stored rows of plans that are over; one query."""
    return [PlanFacts(quarter_of(at), *values) for at, *values in rows.values_list(*COLUMNS)]


def plan_facts_of_row(row: PlanRecord) -> PlanFacts | None:
    """Of a plan as it is in memory; None where it still runs."""
    if row.outcome == RUNNING:
        return None
    at, *values = (getattr(row, name) for name in COLUMNS)
    return PlanFacts(quarter_of(at), *values)
