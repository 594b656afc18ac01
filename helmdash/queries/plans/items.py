"""Plans as a list shows them, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from django.db.models import Min, Q, QuerySet

from helmdash.answers import Doc, Words
from helmdash.core.budgets.budgets import VariantText
from helmdash.core.calls.failures import FailureCause
from helmdash.core.planning.plans import Complexity
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.queries.distinct_values import planned_models
from helmdash.queries.list_series import MOST_LISTED, Newest, newest
from helmdash.queries.paging import (
    Neighbours,
    Page,
    decode_time_cursor,
    encode_cursor,
    newer,
    older,
)
from helmdash.queries.plans.following import shown_by_a_call, was_followed
from helmdash.records.models import PlanRecord, PlanStep
from helmdash.records.querysets import starts_with

# Three tries on a slow free model take five minutes at most; what runs longer has no server.
STALLED_AFTER: Final = timedelta(minutes=15)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanList(Page[PlanItem]):
    """A page of plans, newest first."""

    items: tuple[PlanItem, ...]


def page(
    *,
    project_id: int,
    now: datetime,
    cursor: str | None = None,
    limit: int = 50,
    **filters: Any,
) -> PlanList:
    """Plans, newest first. Two queries, five with a model. Raises BadCursor for a
    cursor that no page of this list gave.

    filters: those of `narrowed`. A plan that runs for longer than STALLED_AFTER reads as failed.
    """
    rows = narrowed(project_id=project_id, now=now, **filters)
    if cursor:
        rows = older(rows, "started_at", *decode_time_cursor(cursor))
    found = list(
        rows_of_items(rows).defer("result", "sketch").order_by("-started_at", "-id")[: limit + 1]
    )
    more = found[limit - 1] if len(found) > limit else None
    shown = found[:limit]
    tools = tools_of(row.pk for row in shown)
    return PlanList(
        items=tuple(item(row, tools.get(row.pk, ()), now) for row in shown),
        next=encode_cursor(more.started_at, more.pk) if more else None,
    )


def neighbours(*, project_id: int, now: datetime, plan_id: str, **filters: Any) -> Neighbours:
    """The plans that the list shows beside one. Three queries, six with a model."""
    named = PlanRecord.objects.filter(project_id=project_id, name=plan_id)
    row = named.only("started_at").first()
    if row is None:
        return Neighbours()
    rows = narrowed(project_id=project_id, now=now, **filters)
    before, after = (
        side(rows, "started_at", row.started_at, row.pk).values_list("name", flat=True).first()
        for side in (newer, older)
    )
    return Neighbours(before=before, after=after)


def narrowed(
    *,
    project_id: int,
    now: datetime,
    model: str | None = None,
    variant: str | None = None,
    outcome: str | None = None,
    kind: str | None = None,
    tool: str | None = None,
    caller: str | None = None,
    intent: str | None = None,
    q: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[PlanRecord]:
    """The plans that fit the filters, in no order; a filter that is None narrows nothing. Three
    queries with a model.

    variant: NO_VARIANT: those for which no call was made. tool: plans with a step that names the
    entry. intent: the hash of what they ask for. q: a part
    of the intent, where it is kept, or the beginning of a plan's id.
    """
    rows = PlanRecord.objects.filter(project_id=project_id)
    stored = "" if variant == NO_VARIANT else variant
    exact = {"prompt_variant": stored, "kind": kind, "caller": caller, "intent_sha": intent}
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if model is not None:
        rows = rows.filter(model__in=planned_models(project_id=project_id, model=model))
    if outcome is not None:
        rows = rows.filter(_has_outcome(outcome, now))
    if tool is not None:
        using = PlanStep.objects.filter(project_id=project_id, entry=tool)
        rows = rows.filter(id__in=using.values("plan_id"))
    if q:
        rows = rows.filter(Q(intent__icontains=q) | starts_with("name", q))
    if since is not None:
        rows = rows.filter(started_at__gte=since)
    if until is not None:
        rows = rows.filter(started_at__lt=until)
    return rows


def moments(*, project_id: int, now: datetime, **filters: Any) -> Newest:
    """When the newest plans that fit were asked for, and their outcome, MOST_LISTED at most.
    filters: as of `narrowed`. One query, four with a model."""
    rows = narrowed(project_id=project_id, now=now, **filters).order_by("-started_at", "-id")
    found = rows.values_list("started_at", "outcome")[: MOST_LISTED + 1]
    return newest([(at, "failed" if has_stalled(said, at, now) else said) for at, said in found])


def first_moment(*, project_id: int) -> datetime | None:
    """When the first plan was asked for. One query."""
    rows = PlanRecord.objects.filter(project_id=project_id)
    at: datetime | None = rows.aggregate(at=Min("started_at"))["at"]
    return at


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


def has_stalled(outcome: str, started_at: datetime, now: datetime) -> bool:
    """Whether a plan says that it runs and can do so no more: its server was stopped."""
    return outcome == "running" and started_at < now - STALLED_AFTER


def _has_outcome(outcome: str, now: datetime) -> Q:
    line = now - STALLED_AFTER
    if outcome == "failed":
        return Q(outcome="failed") | Q(outcome="running", started_at__lt=line)
    if outcome == "running":
        return Q(outcome="running", started_at__gte=line)
    return Q(outcome=outcome)
