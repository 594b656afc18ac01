"""Which values a column of the calls table holds, and which models are in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from helmdash.records.querysets import Column, distinct_values, models_seen


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenModel:
    """A model some call named, and when the newest of them started."""

    model: str
    latest_at: datetime


def values(*, project_id: int, column: Column) -> tuple[str, ...]:
    """Distinct values of a column, in order; the empty one left out. One query."""
    return distinct_values(project_id, column)


def models_since(*, project_ids: Sequence[int], since: datetime) -> tuple[SeenModel, ...]:
    """Models that were called since a moment, over projects. One query."""
    newest: dict[str, datetime] = {}
    for seen in models_seen(project_ids, since):
        newest[seen.model] = max(seen.latest_at, newest.get(seen.model, seen.latest_at))
    return tuple(SeenModel(model=m, latest_at=at) for m, at in sorted(newest.items()))
