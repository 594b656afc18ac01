"""In which other project something lies, for links that were made in another one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from helmdash.records.models import CallName, Conversation, Fit, PlanRecord, Project

Kind = Literal["conversation", "call", "fit", "plan"]
_MODELS: dict[Kind, type[Conversation | CallName | Fit | PlanRecord]] = {
    "conversation": Conversation,
    "call": CallName,
    "fit": Fit,
    "plan": PlanRecord,
}


def find_project_of(
    *, kind: Kind, name: str, besides: int, among: Collection[int] | None
) -> str | None:
    """The slug of a project other than `besides` that has it, real ones before demo data.

    among: the projects that whoever asks may read; None: all of them.
    """
    others = Project.objects.exclude(pk=besides).order_by("is_demo", "id")
    if among is not None:
        others = others.filter(pk__in=among)
    # Each project by itself: the index of the names begins with the project.
    for project_id, slug in others.values_list("id", "slug"):
        if _MODELS[kind].objects.filter(project_id=project_id, name=name).exists():
            return slug
    return None


def known(*, kind: Kind, names: Iterable[str], project_id: int) -> frozenset[str]:
    """Those of the names that the project has things of this kind by. One query."""
    found = _MODELS[kind].objects.filter(project_id=project_id, name__in=list(names))
    return frozenset(found.values_list("name", flat=True))
