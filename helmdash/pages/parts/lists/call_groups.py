"""Stories: the calls of one correlation id, and the plan that they were made for."""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.queries.access import project_lookup

# How our plan ids begin (operations/planning); clients choose other correlation ids.
_PREFIX = "plan_"


def plans_among(correlation_ids: Iterable[str | None], *, project_id: int) -> frozenset[str]:
    """Which of the ids (None: a call without one) are plans of the project. One query, none where
    no id looks like one."""
    names = {each for each in correlation_ids if each and each.startswith(_PREFIX)}
    if not names:
        return frozenset()
    return project_lookup.known(kind="plan", names=names, project_id=project_id)
