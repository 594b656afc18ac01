"""Plans of any range as rollups count them: all of them, in the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Min

from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.core.rollups.figures import Distribution, Key, Marginal, distribution, under
from helmdash.core.rollups.periods import Width, first_quarter, moment_of, period_of, quarter_of
from helmdash.core.rollups.plan_facts import OUTCOME, RUNNING
from helmdash.queries import rollups
from helmdash.queries.calls.series import Only, Series, Split, series, with_rows
from helmdash.queries.plans.filters import has_stalled, narrowed, spellings
from helmdash.queries.plans.listing import first_moment
from helmdash.queries.rollups import RangeFigures
from helmdash.records.models import Rollup

Group = tuple[str, str, str]
"""Model as it is spelt, kind, variant ("" of a route, or of a plan without a call)."""
# Filters of `narrowed` that the keys of rollups carry, besides the range.
CARRIED: Final = frozenset({"model", "variant", "outcome", "kind", "since", "until"})


@dataclass(slots=True)
class Outcomes:
    """Plans by their outcome, and how long they took by bucket (core.rollups.buckets)."""

    outcomes: Counter[str] = field(default_factory=Counter)
    latencies: Counter[int] = field(default_factory=Counter)

    @property
    def plans(self) -> int:
        """How many, those that run among them."""
        return self.outcomes.total()

    @property
    def share_ok(self) -> float | None:
        """Of those that are over; None where none is."""
        over = self.plans - self.outcomes[RUNNING]
        return self.outcomes["ok"] / over if over else None

    def add(self, other: Outcomes) -> None:
        """Add those of other plans."""
        self.outcomes.update(other.outcomes)
        self.latencies.update(other.latencies)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPlans:
    """Plans of a range by group, in two halves by time: those asked for before the middle of it,
    and those after. first_at: where it begins. is_rounded, is_behind: as of RangeFigures."""

    groups: Mapping[Group, tuple[Outcomes, Outcomes]]
    first_at: datetime
    is_rounded: bool
    is_behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Filters as the keys of plans' figures carry them; None: any."""

    models: tuple[str, ...] | None
    variant: str | None
    outcome: str | None
    kind: str | None

    @property
    def is_any(self) -> bool:
        """Whether plans are not told apart by what keys have."""
        return self.models is None and self.variant is None and self.kind is None

    def fits(self, key: Key) -> bool:
        """Whether figures under this key are of such plans."""
        _, kind, variant = key
        return self.kind in (None, kind) and self.variant in (None, variant)

    def outcomes(self, counts: Mapping[str, int]) -> dict[str, int]:
        """How many have each of the outcomes that are asked for."""
        told = under(counts, OUTCOME)
        return {word: n for word, n in told.items() if self.outcome in (None, word)}


def group_of(model: str, kind: str, variant: str) -> Group:
    """A route has no variant, whatever its call was asked with."""
    return model, kind, variant if kind == "plan" else ""


def is_carried(filters: Mapping[str, Any]) -> bool:
    """Whether rollups tell plans that fit these filters (of `narrowed`) from others."""
    return all(value is None or name in CARRIED for name, value in filters.items())


def wanted(*, project_id: int, filters: Mapping[str, Any]) -> Wanted:
    """The filters as keys have them. Three queries with a model, else none."""
    model, variant = filters.get("model"), filters.get("variant")
    return Wanted(
        models=None if model is None else spellings(project_id, model),
        variant="" if variant == NO_VARIANT else variant,
        outcome=filters.get("outcome"),
        kind=filters.get("kind"),
    )


def counted_plans(*, project_id: int, now: datetime, **filters: Any) -> CountedPlans | None:
    """The plans that fit the filters (of `narrowed`); None where rollups do not carry these, or are
    not counted so far. At most nine queries, three more with a model."""
    since, until = filters.get("since"), filters.get("until")
    if not is_carried(filters):
        return None
    start = since or first_counted(project_id=project_id)
    if start is None:
        return None
    asked = wanted(project_id=project_id, filters=filters)
    middle = _middle(start, until or now)
    groups: dict[Group, tuple[Outcomes, Outcomes]] = {}
    halves: list[RangeFigures] = []
    for half, (first, end) in enumerate(((since, middle), (middle, until))):
        found = rollups.figures(
            project_id=project_id,
            marginal=Marginal.PLAN_MODEL,
            since=first,
            until=end,
            distributions=(Distribution.LATENCY_MS,),
            words=asked.models,
        )
        if found is None:
            return None
        halves.append(found)
        for key, counts in found.totals().items():
            told = asked.outcomes(counts) if asked.fits(key) else {}
            if told:
                group = groups.setdefault(group_of(*key), (Outcomes(), Outcomes()))
                group[half].outcomes.update(told)
                group[half].latencies.update(distribution(counts, Distribution.LATENCY_MS))
    for at, model, kind, variant, outcome in running(project_id=project_id, now=now, **filters):
        group = groups.setdefault(group_of(model, kind, variant), (Outcomes(), Outcomes()))
        group[at >= middle].outcomes[outcome] += 1
    return CountedPlans(
        groups=groups,
        first_at=start,
        is_rounded=any(each.is_rounded for each in halves),
        is_behind=any(each.is_behind for each in halves),
    )


def plan_series(*, project_id: int, now: datetime, **filters: Any) -> Series | None:
    """Bars of the plans that fit the filters (of `narrowed`), by outcome, over their whole range;
    None where rollups do not carry these, or are not counted so far. Five queries at most, three
    more with a model."""
    if not is_carried(filters):
        return None
    since = filters.get("since") or first_counted(project_id=project_id)
    if since is None:
        return None
    asked = wanted(project_id=project_id, filters=filters)
    only = (
        Only(marginal=Marginal.PLAN)
        if asked.is_any
        else Only(marginal=Marginal.PLAN_MODEL, words=asked.models, fits=asked.fits)
    )
    found = series(
        project_id=project_id,
        since=since,
        until=filters.get("until"),
        now=now,
        split=Split.OUTCOME,
        only=only,
    )
    if not found.is_whole:
        return None
    if asked.outcome is not None:
        parts = [
            asked.outcomes({f"{OUTCOME}:{word}": n for word, n in bar.parts.items()})
            for bar in found.bars
        ]
        bars = zip(found.bars, parts, strict=True)
        found = replace(
            found,
            bars=tuple(replace(bar, calls=sum(told.values()), parts=told) for bar, told in bars),
        )
    rows = [(at, said) for at, *_, said in running(project_id=project_id, now=now, **filters)]
    return replace(found, bars=with_rows(found.bars, rows))


def first_counted(*, project_id: int) -> datetime | None:
    """A moment at or before the first plan that rollups count, or that there is; None where there
    is none. Two queries."""
    rows = Rollup.objects.filter(project_id=project_id, marginal=Marginal.PLAN.value)
    day = rows.filter(width=Width.DAY.value).aggregate(first=Min("period"))["first"]
    days = [] if day is None else [moment_of(first_quarter(Width.DAY, day))]
    first = first_moment(project_id=project_id)
    return min([*days, *([] if first is None else [first])], default=None)


def running(
    *, project_id: int, now: datetime, **filters: Any
) -> Collection[tuple[datetime, str, str, str, str]]:
    """The plans that fit and that rollups do not have, for they say that they run: when they were
    asked for, model, kind, variant, and their outcome as lists have it. Few; one query."""
    rows = narrowed(project_id=project_id, now=now, **filters).filter(outcome=RUNNING)
    found = rows.values_list("started_at", "model", "kind", "prompt_variant")
    return [
        (*row, "failed" if has_stalled(RUNNING, row[0], now) else RUNNING)
        for row in found.order_by("-started_at")[:_MOST_RUNNING]
    ]


# A plan runs for minutes; what stands still is what servers left that were killed.
_MOST_RUNNING: Final = 5_000


def _middle(start: datetime, end: datetime) -> datetime:
    """About the middle of a range, where a wide period begins: so that the halves have no edge
    between them, and are made of few periods."""
    length = max(end - start, timedelta(0))
    quarter = quarter_of(start + length / 2)
    width = next((width for least, width in _ROUGH if length >= least), Width.QUARTER)
    # Never before the range: then all of it were later.
    return max(moment_of(first_quarter(width, period_of(width, quarter))), start)


# How long a range is for its middle to be that of a period's width: a tenth of it off at most.
_ROUGH: Final = (
    (timedelta(days=300), Width.MONTH),
    (timedelta(days=10), Width.DAY),
    (timedelta(hours=10), Width.HOUR),
)
