"""The past as the ranking takes it: what was picked for which intents, and what that is worth.

Only plans that were followed count in full, and no raw text is read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import F, Q

from helmdash.core.planning.plans import META_TOOLS
from helmdash.core.ranking.history import PastPlan
from helmdash.queries.plans.following import shown_by_a_call
from helmdash.queries.plans.nearest import sketch_of_row
from helmdash.records.models import PlanRecord, PlanStep

# What nobody confirmed may be a good plan that was carried out unseen, or a bad one that was
# thrown away: half a voice.
_UNCONFIRMED: Final = 0.5
_SECONDS_A_DAY: Final = 86_400


def past_plans(*, project_id: int, now: datetime, limit: int = 500) -> tuple[PastPlan, ...]:
    """The newest plans and routes that picked something, oldest first. Two queries.

    Only those that succeeded, or were followed as far as they went; those known not to have been
    followed are left out, as are the planner's own tools.
    """
    rows = (
        PlanRecord.objects.filter(project_id=project_id, step_count__gt=F("gap_count"))
        .annotate(shown=shown_by_a_call())
        .filter(
            Q(outcome="ok") | Q(Q(followed=True) | Q(shown=True), outcome__in=["gap", "partial"])
        )
        .exclude(followed=False)
        .order_by("-started_at", "-id")
    )
    found = list(rows.values_list("id", "sketch", "started_at", "followed", "shown")[:limit])[::-1]
    picked: dict[int, list[str]] = {}
    steps = PlanStep.objects.filter(project_id=project_id, plan_id__in=[row[0] for row in found])
    for plan, entry in steps.order_by("plan_id", "position").values_list("plan_id", "entry"):
        if entry and entry not in META_TOOLS:
            picked.setdefault(plan, []).append(entry)
    return tuple(
        PastPlan(
            intent="",
            tools=tuple(picked[pk]),
            age_days=max((now - started_at).total_seconds() / _SECONDS_A_DAY, 0.0),
            weight=1.0 if followed or shown else _UNCONFIRMED,
            sketch=sketch_of_row(sketch),
        )
        for pk, sketch, started_at, followed, shown in found
        if pk in picked
    )
