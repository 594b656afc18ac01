"""How much a project holds, without counting a million rows for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet

from helmdash.queries import rollups
from helmdash.records.models import Call, Conversation, Fit
from helmdash.records.rollups.level_counts import read_levels

# Counting stops here: "more than 100,000" is all a settings page has to say.
MOST_COUNTED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of a project. bounded: the names of those that were counted no further than
    MOST_COUNTED, and are more."""

    calls: int
    conversations: int
    fits: int
    bounded: frozenset[str]


def row_counts(*, project_id: int) -> RowCounts:
    """Rows of a project: calls from rollups, conversations by how many stand at each level; fits,
    and what is not counted there yet, from MOST_COUNTED index entries at most. Seven queries at
    most."""
    calls = rollups.held_calls(project_id=project_id)
    levels = read_levels(project_id)
    counted = {"fits": _bounded(Fit.objects.filter(project_id=project_id))}
    if calls is None:
        calls = counted["calls"] = _bounded(Call.objects.filter(project_id=project_id))
    if levels is None:
        talks = Conversation.objects.filter(project_id=project_id)
        conversations = counted["conversations"] = _bounded(talks)
    else:
        conversations = levels.total()
    return RowCounts(
        calls=calls,
        conversations=conversations,
        fits=counted["fits"],
        bounded=frozenset(name for name, rows in counted.items() if rows >= MOST_COUNTED),
    )


def _bounded(rows: QuerySet[Any, Model]) -> int:
    return rows.order_by().values("project_id")[:MOST_COUNTED].count()
