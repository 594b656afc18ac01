"""Whether a plan was carried out, as far as anybody can tell.

Somebody said so (operations.planning.feedback), or a recorded call shows it: one that names the
plan as its correlation id and was made by a pack that the plan has as a step. The calls that made
the plan name it as well; their purpose tells them apart.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from helmdash.records.models import Call, CallName, PlanStep

# Calls that are part of planning, and never of carrying a plan out.
PLANNING_PURPOSES = ("plan", "route", "filter")


def shown_by_a_call() -> Exists:
    """For each plan of a query: whether a call shows that it was followed.

    One look into the index `call_name_by_correlation` for each plan, and one at each call that
    names it.
    """
    steps = PlanStep.objects.filter(
        project_id=OuterRef("project_id"), plan_id=OuterRef(OuterRef(OuterRef("pk")))
    ).exclude(entry="")
    calls = Call.objects.filter(
        ~Q(purpose__in=PLANNING_PURPOSES),
        project_id=OuterRef("project_id"),
        started_at=OuterRef("started_at"),
        id=OuterRef("call_id"),
        pack__in=steps.values("entry"),
    )
    names = CallName.objects.filter(
        Exists(calls), project_id=OuterRef("project_id"), correlation_id=OuterRef("name")
    )
    return Exists(names)


def was_followed(said: bool | None, shown: bool) -> bool | None:
    """What was said about a plan counts before what its calls show; None: nobody knows."""
    if said is not None:
        return said
    return True if shown else None
