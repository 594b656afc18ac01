"""What became of the plans of a range: by model and variant, and by what was asked for.

Ranges of up to MOST_READ plans are told from these. Totals of more come from rollups, where these
carry the filters: all plans of the range. Else, and by intent, figures are of the newest MOST_READ,
and say so: what a range costs does not depend on how many it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median
from typing import Any, Final

from helmdash.core.rollups.buckets import median as median_of_buckets
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.queries.plans.counted import CountedPlans, Group, Outcomes, counted_plans, group_of
from helmdash.queries.plans.newest import NewestPlans, PlanFacts
from helmdash.records.models import PlanRecord

# Two halves of fewer plans tell no trend.
_FEWEST_FOR_A_TREND: Final = 10
# What a page holds of intents; those that are asked for most.
_MOST_INTENTS: Final = 50
_NAMED_MODELS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotal:
    """Plans of one model, kind and variant ("" is a route, or a plan without a call), or of all.

    ok to failed: their outcomes; those that still run are in none of them. earlier, later: the
    share of ok in the first and in the second half by time (of the plans, or where they are told
    from rollups, of their range); None: too few plans. latency_ms: the median; None: none is over.
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
    on. intents: how many different ones there are; of so many of the newest plans, `intents_of`,
    where the range has more. latency_of: latencies are of so many of the newest; None: of all.
    is_rounded, is_behind: as of queries.rollups.RangeFigures.
    """

    all: PlanTotal
    groups: tuple[PlanTotal, ...]
    intents: int
    intents_of: int | None
    is_sample: bool
    first_at: datetime
    latency_of: int | None = None
    is_rounded: bool = False
    is_behind: bool = False


def totals(
    newest: NewestPlans, *, project_id: int, now: datetime, **filters: Any
) -> PlanTotals | None:
    """The figures of the plans that fit the filters (of `narrowed`), of which these are the newest;
    None: there are none. No query, with more than MOST_READ plans nine at most, and three more with
    a model that is not spelt out."""
    rows, is_more = newest.rows, newest.is_sample
    if not rows:
        return None
    counted = counted_plans(project_id=project_id, now=now, **filters) if is_more else None
    if counted is None:
        return _of_rows(rows, is_more)
    # Times are not counted by outcome.
    told = _of_counted(counted, rows)
    return (
        told if filters.get("outcome") is None else _with_latencies(told, _of_rows(rows, is_more))
    )


def _of_rows(rows: Sequence[PlanFacts], is_sample: bool) -> PlanTotals:
    groups: dict[Group, list[PlanFacts]] = {}
    for row in rows:
        groups.setdefault(group_of(row.model, row.kind, row.variant), []).append(row)
    return PlanTotals(
        all=_total(rows),
        groups=_sorted(_total(each, *key) for key, each in groups.items()),
        intents=_intents(rows),
        intents_of=len(rows) if is_sample else None,
        is_sample=is_sample,
        first_at=rows[-1].at,
    )


def _of_counted(found: CountedPlans, rows: Sequence[PlanFacts]) -> PlanTotals:
    """rows: the newest of them, for what is no count."""
    whole = (Outcomes(), Outcomes())
    for halves in found.groups.values():
        for into, told in zip(whole, halves, strict=True):
            into.add(told)
    return PlanTotals(
        all=_counted_total(*whole),
        groups=_sorted(_counted_total(*halves, *key) for key, halves in found.groups.items()),
        intents=_intents(rows),
        intents_of=len(rows),
        is_sample=False,
        first_at=found.first_at,
        is_rounded=found.is_rounded,
        is_behind=found.is_behind,
    )


def _with_latencies(counted: PlanTotals, read: PlanTotals) -> PlanTotals:
    """The same with the latencies of the newest plans, that were read."""
    known = {(each.model, each.kind, each.variant): each.latency_ms for each in read.groups}
    groups = tuple(
        replace(each, latency_ms=known.get((each.model, each.kind, each.variant)))
        for each in counted.groups
    )
    whole = replace(counted.all, latency_ms=read.all.latency_ms)
    return replace(counted, all=whole, groups=groups, latency_of=read.all.plans)


def _sorted(found: Iterable[PlanTotal]) -> tuple[PlanTotal, ...]:
    return tuple(sorted(found, key=lambda each: (-each.plans, each.model, each.kind, each.variant)))


def _intents(rows: Sequence[PlanFacts]) -> int:
    return len({row.intent_sha for row in rows})


def intents(newest: NewestPlans) -> tuple[IntentTotal, ...]:
    """These plans by what they ask for, the most frequent first. One query."""
    groups: dict[str, list[PlanFacts]] = {}
    for row in newest.rows:
        groups.setdefault(row.intent_sha, []).append(row)
    shown = sorted(groups.values(), key=lambda each: (-len(each), each[0].intent_sha))
    shown = shown[:_MOST_INTENTS]
    shown_ids = {each[0].pk for each in shown}
    told = PlanRecord.objects.filter(id__in=shown_ids).values_list("id", "name", "intent")
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


def _total(
    rows: Sequence[PlanFacts], model: str = "", kind: str = "", variant: str = ""
) -> PlanTotal:
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


def _counted_total(
    earlier: Outcomes, later: Outcomes, model: str = "", kind: str = "", variant: str = ""
) -> PlanTotal:
    both = Outcomes()
    both.add(earlier)
    both.add(later)
    has_trend = both.plans >= _FEWEST_FOR_A_TREND
    latency = median_of_buckets(both.latencies)
    return PlanTotal(
        model=model,
        kind=kind,
        variant=variant,
        plans=both.plans,
        ok=both.outcomes["ok"],
        gap=both.outcomes["gap"],
        partial=both.outcomes["partial"],
        failed=both.outcomes["failed"],
        earlier=earlier.share_ok if has_trend else None,
        later=later.share_ok if has_trend else None,
        latency_ms=None if latency is None else round(latency),
    )


def _share_ok(rows: Iterable[PlanFacts]) -> float | None:
    over = [row.outcome == "ok" for row in rows if row.outcome != "running"]
    return sum(over) / len(over) if over else None
