"""What callers say about a plan afterwards."""

from __future__ import annotations

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import PlanRecord


class NoSuchPlan(Exception):
    """The project has no plan with this id."""


def note_followed(*, actor: Actor, project: ProjectInfo, plan_id: str, followed: bool) -> None:
    """Note whether a plan's steps were carried out; what is said last holds.

    A plan that was followed counts in full in later rankings, one that was not no longer counts.
    Raises Forbidden and NoSuchPlan.
    """
    require(actor, Right.GIVE_FEEDBACK, project_id=project.id)
    rows = PlanRecord.objects.filter(project_id=project.id, name=plan_id)
    if not rows.update(followed=followed):
        raise NoSuchPlan(f"there is no plan {plan_id} in this project")
