"""What became of the plans of a range: by model and variant, and by what was asked for.

Figures read the newest MOST_READ plans of a range and no more: what a range costs does not depend
on how many it has. With more of them the figures are of the newest, and say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final, NamedTuple

from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.queries.plans.items import has_stalled, narrowed
from helmdash.records.models import PlanRecord

# Rows of eight columns by an index: some hundredths of a second.
MOST_READ: Final = 5_000
# Two halves of fewer plans tell no trend.
_FEWEST_FOR_A_TREND: Final = 10
# What a page holds of intents; those that are asked for most.
_MOST_INTENTS: Final = 50
_NAMED_MODELS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotal:
    """Plans of one model, kind and variant ("" is a route, or a plan without a call), or of all.

    ok to failed: their outcomes; those that still run are in none of them. earlier, later: the
    share of ok in the first and in the second half by time; None: too few plans. latency_ms: the
    median; None: none is over.
    """

    model: str
    kind: str
    variant: str
    plans: int
    ok: int
    gap: int
    partial: int
    failed: int
    earlier: float | None
    later: float | None
    latency_ms: int | None

    @property
    def variant_filter(self) -> str | None:
        """The variant of `narrowed` that leaves these plans of their model and kind; None: any, for
        a route's does not tell it apart."""
        return None if self.kind == "route" else self.variant or NO_VARIANT


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentTotal:
    """Plans that ask for the same. newest_id: leads to the newest of them; intent None: texts are
    not kept. models: the most frequent ones."""

    intent_sha: str
    intent: str | None
    newest_id: str
    latest_at: datetime
    models: tuple[str, ...]
    total: PlanTotal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """is_sample: the range has more than MOST_READ plans, and these are the newest, from `first_at`
    on. intents: how many different ones there are."""

    all: PlanTotal
    groups: tuple[PlanTotal, ...]
    intents: int
    is_sample: bool
    first_at: datetime


class _Row(NamedTuple):
    pk: int
    at: datetime
    outcome: str
    model: str
    kind: str
    variant: str
    latency_ms: int | None
    intent_sha: str


def totals(*, project_id: int, now: datetime, **filters: Any) -> PlanTotals | None:
    """The figures of the plans that fit the filters (of `narrowed`); None: there are none. One
    query, four with a model."""
    rows, is_sample = _read(project_id, now, filters)
    if not rows:
        return None
    groups: dict[tuple[str, str, str], list[_Row]] = {}
    for row in rows:
        # A route has no variant, whatever its call was asked with.
        variant = row.variant if row.kind == "plan" else ""
        groups.setdefault((row.model, row.kind, variant), []).append(row)
    found = (_total(each, *key) for key, each in groups.items())
    return PlanTotals(
        all=_total(rows),
        groups=tuple(
            sorted(found, key=lambda each: (-each.plans, each.model, each.kind, each.variant))
        ),
        intents=len({row.intent_sha for row in rows}),
        is_sample=is_sample,
        first_at=rows[-1].at,
    )


def intents(*, project_id: int, now: datetime, **filters: Any) -> tuple[IntentTotal, ...]:
    """The plans that fit the filters by what they ask for, the most frequent first. Two queries,
    five with a model."""
    rows, _ = _read(project_id, now, filters)
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        groups.setdefault(row.intent_sha, []).append(row)
    shown = sorted(groups.values(), key=lambda each: (-len(each), each[0].intent_sha))
    shown = shown[:_MOST_INTENTS]
    newest = {each[0].pk for each in shown}
    told = PlanRecord.objects.filter(id__in=newest).values_list("id", "name", "intent")
    named = {pk: (name, intent) for pk, name, intent in told}
    return tuple(
        IntentTotal(
            intent_sha=each[0].intent_sha,
            intent=named[each[0].pk][1] or None,
            newest_id=named[each[0].pk][0],
            latest_at=each[0].at,
            models=tuple(
                model for model, _ in Counter(row.model for row in each).most_common(_NAMED_MODELS)
            ),
            total=_total(each),
        )
        for each in shown
        if each[0].pk in named
    )


def _read(project_id: int, now: datetime, filters: Any) -> tuple[list[_Row], bool]:
    """The newest first, and whether there are more."""
    rows = narrowed(project_id=project_id, now=now, **filters).order_by("-started_at", "-id")
    told = rows.values_list(
        "id", "started_at", "outcome", "model", "kind", "prompt_variant", "latency_ms", "intent_sha"
    )[: MOST_READ + 1]
    found = [_Row(*row) for row in told]
    return [
        row._replace(outcome="failed") if has_stalled(row.outcome, row.at, now) else row
        for row in found[:MOST_READ]
    ], len(found) > MOST_READ


def _total(rows: Sequence[_Row], model: str = "", kind: str = "", variant: str = "") -> PlanTotal:
    counts = Counter(row.outcome for row in rows)
    latencies = [row.latency_ms for row in rows if row.latency_ms is not None]
    middle = len(rows) // 2
    has_trend = len(rows) >= _FEWEST_FOR_A_TREND
    return PlanTotal(
        model=model,
        kind=kind,
        variant=variant,
        plans=len(rows),
        ok=counts["ok"],
        gap=counts["gap"],
        partial=counts["partial"],
        failed=counts["failed"],
        earlier=_share_ok(rows[middle:]) if has_trend else None,
        later=_share_ok(rows[:middle]) if has_trend else None,
        latency_ms=round(median(latencies)) if latencies else None,
    )


def _share_ok(rows: Iterable[_Row]) -> float | None:
    over = [row.outcome == "ok" for row in rows if row.outcome != "running"]
    return sum(over) / len(over) if over else None
