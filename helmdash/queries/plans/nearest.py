"""Plans for like intents, and what they picked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from helmdash.answers import INLINE, Doc
from helmdash.core.ranking.history import PastPlan, similar_to_sketch
from helmdash.queries.plans.detail import PlanView, find
from helmdash.queries.plans.filters import has_stalled
from helmdash.queries.plans.items import Outcome, tools_of
from helmdash.records.models import PlanRecord

# As many as the ranking reads of the past: what is shown as similar is what was counted.
_COMPARED: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarPlan:
    """A plan for a like intent, and what it picked. `nearness` is 1 for the same words.

    tools: the catalog's ids of its real steps. gaps: how many steps have none. count: among those
    compared, by intent_sha; of them this is the newest that picked something.
    """

    id: str
    intent: str | None
    nearness: float
    tools: tuple[str, ...]
    gaps: int
    count: Annotated[int, Doc("Plans that ask for the same; this is the newest.")]
    outcome: Outcome
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDetail:
    """One plan with everything kept about it."""

    plan: Annotated[PlanView, INLINE]
    similar: Annotated[tuple[SimilarPlan, ...], Doc("Nearest first.")]


def find_detail(*, project_id: int, plan_id: str, now: datetime) -> PlanDetail | None:
    """One plan and those near it; None where nothing has the id. At most ten queries."""
    found = find(project_id=project_id, plan_id=plan_id, now=now)
    if found is None:
        return None
    return PlanDetail(plan=found, similar=similar(project_id=project_id, plan_id=plan_id, now=now))


def similar(
    *, project_id: int, plan_id: str, now: datetime, limit: int = 5
) -> tuple[SimilarPlan, ...]:
    """The plans with the nearest intents among the newest, nearest first. Four queries.

    Plans that ask for the same are given as one. Compared by their sketches, so that
    it works for projects that keep no text.
    """
    rows = PlanRecord.objects.filter(project_id=project_id)
    sketch = rows.filter(name=plan_id).values_list("sketch", flat=True).first()
    if not sketch:
        return ()
    others = rows.exclude(name=plan_id).order_by("-started_at", "-id")
    rows_of: dict[str, list[tuple[int, int, Any]]] = {}
    facts = others.values_list("intent_sha", "id", "step_count", "sketch")[:_COMPARED]
    for sha, pk, steps, words in facts:
        rows_of.setdefault(sha, []).append((pk, steps, words))
    # One that picked something, if any did: that is what they are shown for.
    found = [
        (next((row for row in same if row[1]), same[0]), len(same)) for same in rows_of.values()
    ][::-1]
    history = [PastPlan(intent="", tools=(), sketch=sketch_of_row(row[2])) for row, _ in found]
    near = {
        found[at][0][0]: (nearness, found[at][1])
        for at, nearness in similar_to_sketch(history, sketch_of_row(sketch), limit=limit)
    }
    return _views(near, now)


def sketch_of_row(stored: list[list[str]] | None) -> tuple[tuple[str, ...], ...]:
    """A sketch as the ranking takes it, from its JSON; empty for None: the row has none."""
    return tuple(tuple(words) for words in stored or ())


def _views(near: dict[int, tuple[float, int]], now: datetime) -> tuple[SimilarPlan, ...]:
    rows = {row.pk: row for row in PlanRecord.objects.filter(id__in=near).defer("result", "sketch")}
    tools = tools_of(near)
    return tuple(
        SimilarPlan(
            id=row.name,
            intent=row.intent or None,
            nearness=nearness,
            tools=tools.get(pk, ()),
            gaps=row.gap_count,
            count=count,
            outcome="failed" if has_stalled(row.outcome, row.started_at, now) else row.outcome,
            at=row.started_at,
        )
        for pk, (nearness, count) in near.items()
        if (row := rows.get(pk)) is not None
    )
