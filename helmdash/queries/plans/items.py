"""Plans as a list shows them, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from django.db.models import QuerySet

from helmdash.answers import Doc, Words
from helmdash.core.budgets.budgets import VariantText
from helmdash.core.calls.failures import FailureCause
from helmdash.core.planning.plans import Complexity
from helmdash.queries.plans.filters import has_stalled
from helmdash.queries.plans.following import shown_by_a_call, was_followed
from helmdash.records.models import PlanRecord, PlanStep

# Words that are kept as plain text.
Outcome = Annotated[str, Words(("running", "ok", "gap", "partial", "failed"))]
ComplexityText = Annotated[str, Words(tuple(Complexity))]
CauseName = Annotated[str, Words(tuple(FailureCause))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanItem:
    """One plan or route as lists show it.

    gaps: how many steps have no entry. cause: why it failed. at: when it was asked for. followed:
    whether its steps were carried out.
    """

    id: str
    kind: Annotated[str, Words(("plan", "route"))]
    intent: Annotated[str | None, Doc("Null where the project keeps no texts.")]
    intent_sha: Annotated[str, Doc("The same for the same request.")]
    model: str
    prompt_variant: VariantText | None
    complexity: ComplexityText | None
    outcome: Outcome
    cause: CauseName | None
    steps: Annotated[int, Doc("How many, gaps included.")]
    gaps: int
    tools: Annotated[tuple[str, ...], Doc("The entries of its steps, in order.")]
    at: datetime
    latency_ms: int | None
    before_bytes: Annotated[int | None, Doc("The catalog as it was.")]
    after_bytes: Annotated[int | None, Doc("The catalog as the last attempt showed it.")]
    caller: str | None
    more_steps_likely: bool | None
    followed: Annotated[bool | None, Doc("Null: nobody knows.")]


def rows_of_items(rows: QuerySet[PlanRecord]) -> QuerySet[PlanRecord]:
    """The rows with the columns and the one relation that `item` reads, and no others."""
    return rows.annotate(shown=shown_by_a_call()).defer("sketch")


def tools_of(plan_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """The entries of some plans' real steps, in order. One query."""
    found: dict[int, tuple[str, ...]] = {}
    steps = PlanStep.objects.filter(plan_id__in=list(plan_ids)).exclude(entry="")
    for plan, entry in steps.order_by("plan_id", "position").values_list("plan_id", "entry"):
        found[plan] = (*found.get(plan, ()), entry)
    return found


def item(row: PlanRecord, tools: tuple[str, ...], now: datetime) -> PlanItem:
    """What lists show of a row of `rows_of_items`; a plan that stalled (by `now`) reads as
    failed."""
    return PlanItem(
        id=row.name,
        kind=row.kind,
        intent=row.intent or None,
        intent_sha=row.intent_sha,
        model=row.model,
        prompt_variant=row.prompt_variant or None,
        complexity=row.complexity or None,
        outcome="failed" if has_stalled(row.outcome, row.started_at, now) else row.outcome,
        cause=row.cause or None,
        steps=row.step_count,
        gaps=row.gap_count,
        tools=tools,
        at=row.started_at,
        latency_ms=row.latency_ms,
        before_bytes=row.before_bytes,
        after_bytes=row.after_bytes,
        caller=row.caller or None,
        more_steps_likely=row.more_steps_likely,
        followed=was_followed(row.followed, vars(row)["shown"]),
    )
