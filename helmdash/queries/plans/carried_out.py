"""The calls that carried a plan out, by the entry that made them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db.models import Q

from helmdash.queries.calls import CallView
from helmdash.queries.calls import view as call_view
from helmdash.queries.plans.following import PLANNING_PURPOSES
from helmdash.queries.plans.items import PlanItem
from helmdash.records.models import Call

# What a page tells of one plan.
_MOST_CALLS: Final = 100
# A caller's clock may be behind ours.
_SLACK: Final = timedelta(minutes=5)


def carried_out(*, project_id: int, plan: PlanItem) -> Mapping[str, tuple[CallView, ...]]:
    """The calls that name the plan as their correlation id, by their pack, oldest first. One query,
    none for a plan without a step."""
    if not plan.tools:
        return {}
    rows = Call.objects.filter(
        # In the words of the partial index: SQLite uses it only then.
        ~Q(correlation_id=""),
        ~Q(purpose__in=PLANNING_PURPOSES),
        project_id=project_id,
        correlation_id=plan.id,
        pack__in=plan.tools,
        # What carries a plan out comes after it: months before are not asked.
        started_at__gte=plan.at - _SLACK,
    ).select_related("conversation")
    found: dict[str, tuple[CallView, ...]] = {}
    for row in rows.order_by("started_at", "id")[:_MOST_CALLS]:
        found[row.pack] = (*found.get(row.pack, ()), call_view(row))
    return found
