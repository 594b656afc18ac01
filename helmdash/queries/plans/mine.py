"""What a caller has planned lately, in groups of like intents: `helmdeck://my-plans`.

No intents, arguments or rationales are in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Final

from django.db.models import Count, Max
from django.db.models.functions import Coalesce

from helmdash.answers import HIDDEN, OPTIONAL, WHEN_SAID, member
from helmdash.core.planning.plans import META_TOOLS
from helmdash.queries.plans.items import ComplexityText
from helmdash.records.models import PlanRecord, PlanStep

# A caller's habits of last year are no help.
_DAYS: Final = 30
_MOST_GROUPS: Final = 25
_MOST_TOOLS: Final = 5
_MOST_MODELS: Final = 3
_NOTE: Final = "No plan of yours in the last 30 days: groups appear after your first one."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGroup:
    """Plans of one intent.

    complexity: the most frequent. last_at: when the newest was made.
    """

    intent_sha: str
    count: int
    complexity: Annotated[ComplexityText | None, WHEN_SAID]
    top_tools: Annotated[tuple[str, ...], WHEN_SAID]
    last_at: Annotated[datetime, HIDDEN]
    models: Annotated[tuple[str, ...], WHEN_SAID]

    @property
    @member
    def last_unix(self) -> int:
        """The same in seconds since 1970."""
        return int(self.last_at.timestamp())


@dataclass(frozen=True, slots=True, kw_only=True)
class MyPlans:
    """What the caller has planned lately, the most frequent first."""

    caller: Annotated[str, HIDDEN]
    fetched_at: datetime
    groups: tuple[PlanGroup, ...]

    @property
    @member
    def scope(self) -> str:
        """Whose plans they are."""
        return f"caller={self.caller}"

    @property
    @member
    def note(self) -> Annotated[str | None, OPTIONAL]:
        """Why there is nothing, where there is nothing."""
        return None if self.groups else _NOTE


def my_plans(*, project_id: int, caller: str, now: datetime) -> MyPlans:
    """The caller's answered plans of the last 30 days, the most frequent intents. Two queries,
    which count them all and give a row for each intent and model."""
    plans = PlanRecord.objects.filter(
        project_id=project_id,
        caller=caller,
        kind="plan",
        outcome__in=["ok", "gap", "partial"],
        started_at__gte=now - timedelta(days=_DAYS),
    )
    tally: dict[str, _Tally] = {}
    ended_at = Coalesce("finished_at", "started_at")
    for sha, complexity, model, count, last_at in (
        plans.order_by()
        .values_list("intent_sha", "complexity", "model")
        .annotate(count=Count("id"), last_at=Max(ended_at))
    ):
        group = tally.setdefault(sha, _Tally(last_at))
        group.count += count
        group.complexities[complexity] += count
        group.models[model] += count
        group.last_at = max(group.last_at, last_at)
    shown = sorted(
        tally.items(),
        key=lambda pair: (-pair[1].count, -int(pair[1].last_at.timestamp()), pair[0]),
    )[:_MOST_GROUPS]
    for sha, entry, count in (
        PlanStep.objects.filter(
            project_id=project_id, plan__in=plans.filter(intent_sha__in=[sha for sha, _ in shown])
        )
        .exclude(entry__in=["", *META_TOOLS])
        .order_by()
        .values_list("plan__intent_sha", "entry")
        .annotate(count=Count("id"))
    ):
        tally[sha].tools[entry] += count
    groups = tuple(_group(sha, found) for sha, found in shown)
    return MyPlans(caller=caller, fetched_at=now, groups=groups)


@dataclass(slots=True)
class _Tally:
    last_at: datetime
    count: int = 0
    complexities: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)


def _group(sha: str, found: _Tally) -> PlanGroup:
    return PlanGroup(
        intent_sha=sha,
        count=found.count,
        complexity=next(iter(_top(found.complexities, 1)), None),
        top_tools=_top(found.tools, _MOST_TOOLS),
        last_at=found.last_at,
        models=_top(found.models, _MOST_MODELS),
    )


def _top(counts: Counter[str], most: int) -> tuple[str, ...]:
    """The most frequent words, those alike in alphabetical order; the empty one never."""
    named: Iterable[tuple[str, int]] = ((word, n) for word, n in counts.items() if word)
    ranked = sorted(named, key=lambda pair: (-pair[1], pair[0]))
    return tuple(word for word, _ in ranked[:most])
