"""How much a project holds, without counting a million rows for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet

from helmdash.records.models import Call, Conversation, Fit

# Counting stops here: "more than 100,000" is all a settings page has to say.
MOST_COUNTED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Rows of a project; each number stops at MOST_COUNTED."""

    calls: int
    conversations: int
    fits: int


def row_counts(*, project_id: int) -> RowCounts:
    """Rows of a project. Three queries that read MOST_COUNTED index entries at most."""
    return RowCounts(
        calls=_bounded(Call.objects.filter(project_id=project_id)),
        conversations=_bounded(Conversation.objects.filter(project_id=project_id)),
        fits=_bounded(Fit.objects.filter(project_id=project_id)),
    )


def _bounded(rows: QuerySet[Any, Model]) -> int:
    return rows.order_by().values("project_id")[:MOST_COUNTED].count()
