"""The newest plans that fit, as figures and bars are told from them: read once for both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from helmdash.queries.calls.list_series import Newest
from helmdash.queries.lists.by_value import first_values
from helmdash.queries.plans.filters import has_stalled, narrowed, reach

# Rows of eight columns by an index: two hundredths of a second.
MOST_READ: Final = 2_000


class PlanFacts(NamedTuple):
    """A plan without its texts; the outcome as it reads by now."""

    pk: int
    at: datetime
    outcome: str
    model: str
    kind: str
    variant: str
    latency_ms: int | None
    intent_sha: str


_COLUMNS: Final = (
    *("id", "started_at", "outcome", "model", "kind", "prompt_variant", "latency_ms", "intent_sha"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPlans:
    """Newest first. read_from: plans of before were not read; None: these are all."""

    rows: tuple[PlanFacts, ...]
    read_from: datetime | None

    @property
    def is_sample(self) -> bool:
        """Whether there are more."""
        return self.read_from is not None

    @property
    def moments(self) -> Newest:
        """As bars are drawn of them."""
        return Newest(rows=[(row.at, row.outcome) for row in self.rows], read_from=self.read_from)


def newest_plans(*, project_id: int, now: datetime, **filters: Any) -> NewestPlans:
    """MOST_READ plans at most that fit the filters (of `narrowed`). One query, four with a model
    that is not spelt out, and those of `narrowed` and `reach` with terms."""
    rows = narrowed(project_id=project_id, now=now, **filters).order_by("-started_at", "-id")
    looked = reach(project_id=project_id, now=now, **filters)
    rows = looked.within(rows) if looked else rows
    told = first_values(rows, "started_at", MOST_READ + 1, _COLUMNS)
    found = [PlanFacts(*row) for row in told]
    if len(found) > MOST_READ:
        read_from: datetime | None = found[MOST_READ].at
    else:
        read_from = looked.last[0] if looked else None
    return NewestPlans(
        rows=tuple(
            row._replace(outcome="failed") if has_stalled(row.outcome, row.at, now) else row
            for row in found[:MOST_READ]
        ),
        read_from=read_from,
    )
