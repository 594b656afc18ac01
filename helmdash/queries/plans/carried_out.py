"""The calls that carried a plan out, by the entry that made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from helmdash.queries.calls.calls import CallView
from helmdash.queries.calls.calls import view as call_view
from helmdash.queries.plans.following import PLANNING_PURPOSES
from helmdash.queries.plans.items import PlanItem
from helmdash.records.call_names import calls_at, find_correlated

# What a page tells of one plan.
_MOST_CALLS: Final = 100
# Of the calls that name it, those that made the plan among them, so many are looked at.
_MOST_NAMING: Final = 1_000


def carried_out(*, project_id: int, plan: PlanItem) -> Mapping[str, tuple[CallView, ...]]:
    """The calls that name the plan as their correlation id, by their pack, oldest first. Two
    queries, none for a plan without a step."""
    if not plan.tools:
        return {}
    places = find_correlated(project_id, [plan.id], _MOST_NAMING, oldest=True)
    rows = calls_at(project_id, places).exclude(purpose__in=PLANNING_PURPOSES)
    rows = rows.filter(pack__in=plan.tools).select_related("conversation")
    found: dict[str, tuple[CallView, ...]] = {}
    for row in rows.order_by("started_at", "id")[:_MOST_CALLS]:
        found[row.pack] = (*found.get(row.pack, ()), call_view(row))
    return found
