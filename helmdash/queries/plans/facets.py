"""Which values the plans of a list have, and how many have each."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.queries.lists.by_value import first_values
from helmdash.queries.lists.facets import MOST_COUNTED, Facets, count_values
from helmdash.queries.plans.filters import has_stalled, narrowed, reach
from helmdash.queries.plans.items import tools_of

_COLUMNS: Final = (
    "id",
    "started_at",
    "outcome",
    "cause",
    "model",
    "prompt_variant",
    "kind",
    "caller",
)
_FIELDS: Final = ("outcome", "cause", "model", "variant", "kind", "tool", "caller")


def facets(*, project_id: int, now: datetime, **filters: Any) -> Facets:
    """Of the newest MOST_COUNTED plans that fit (filters: as of `narrowed`). Two queries, one more
    where terms are tried, and those for the values of filters."""
    rows = narrowed(project_id=project_id, now=now, **filters).order_by("-started_at", "-id")
    looked = reach(project_id=project_id, now=now, **filters)
    if looked:
        rows = looked.within(rows)
    found = first_values(rows, "started_at", MOST_COUNTED + 1, _COLUMNS)
    shown = found[:MOST_COUNTED]
    tools = tools_of(pk for pk, *_ in shown)
    counted = [
        {
            "outcome": ("failed" if has_stalled(outcome, at, now) else outcome,),
            "cause": (cause,),
            "model": (model,),
            "variant": (variant or NO_VARIANT,),
            "kind": (kind,),
            "tool": set(tools.get(pk, ())),
            "caller": (caller,),
        }
        for pk, at, outcome, cause, model, variant, kind, caller in shown
    ]
    is_all = len(found) <= MOST_COUNTED and looked is None
    return count_values(counted, _FIELDS, is_all=is_all)
