"""One plan with everything kept about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from helmdash.answers import HIDDEN, INLINE, Doc, JsonName, Stored, Words, answer, member
from helmdash.core.budgets.budgets import VariantText
from helmdash.core.calls.failures import Advice, Cause, FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.schema import CatalogJson
from helmdash.core.catalog.trim import KindText, Trim
from helmdash.core.planning.answers import AnsweredPlan, AnsweredRoute
from helmdash.queries.plans.filters import has_stalled
from helmdash.queries.plans.items import (
    CauseName,
    Outcome,
    PlanItem,
    item,
    rows_of_items,
)
from helmdash.records.access.secrets import unseal
from helmdash.records.models import Fit, PlanAttempt, PlanCatalog, PlanRecord, PlanStep

STALLED: Final = "It was never finished: its server was stopped, or lost the task."
# A chain of more single picks than a plan may have steps is no chain any more.
_MOST_IN_CHAIN: Final = 50
FinishText = Annotated[str, Words(tuple(FinishReason))]


@answer("StepDetail")
@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step as it is kept. `entry` and `kind` are null for a gap."""

    position: Annotated[int, JsonName("order")]
    entry: str | None
    is_pipeline: Annotated[bool, HIDDEN]
    asked: Annotated[str | None, Doc("What the model wrote, where it differs.")]
    gap: Annotated[str | None, Doc("Why no entry was found.")]
    suggestions: Annotated[tuple[str, ...], Doc("The nearest entries, for a gap.")]
    args: Annotated[Mapping[str, object] | None, Doc("Null where no texts are kept.")]
    args_sha: Annotated[str | None, Doc("The same for the same arguments.")]
    rationale: str | None

    @property
    @member
    def kind(self) -> Annotated[str | None, Stored(KindText | None)]:
        """What the entry is; None for a gap."""
        if not self.entry:
            return None
        return "pipeline" if self.is_pipeline else "pack"


@answer("AttemptDetail")
@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One call made for a plan; `call_id` leads to all of it.

    reason: why it was made.
    """

    number: int
    purpose: Annotated[str, Words(("filter", "plan", "route"))]
    call_id: str
    model: str
    variant: Annotated[VariantText | None, JsonName("prompt_variant")]
    response_format: str | None
    max_tokens: int | None
    reason: str | None
    cause: CauseName | None
    finish_reason: FinishText | None
    latency_ms: int | None
    prompt_bytes: int | None
    system_sha: Annotated[str | None, Doc("Calls with the same one share a cacheable prefix.")]
    catalog_digest: Annotated[str | None, HIDDEN]
    catalog_bytes: int | None
    fit_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """A plan of the same piece of work.

    Each goes on where the one it continues stopped. tools: the catalog's ids of its real steps.
    gaps: how many steps have none.
    """

    id: str
    continues: str | None
    tools: tuple[str, ...]
    gaps: Annotated[int, HIDDEN]
    outcome: Outcome
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """One plan with everything kept about it.

    problem: why there is none, as a sentence. catalog: what the last try showed, as JSON. rules:
    None for a plan from before they were stored. chain: the plans it goes on from and those that go
    on from it, itself among them; empty where there are no others.
    """

    item: Annotated[PlanItem, INLINE]
    cause: Cause | None
    problem: Annotated[str | None, Doc("Why there is no answer, as a sentence.")]
    result: Annotated[
        Mapping[str, object] | None,
        JsonName("plan"),
        Stored(AnsweredPlan | AnsweredRoute | None),
        Doc("The answer. Null while it runs, and where no texts are kept."),
    ]
    steps: Annotated[tuple[StepView, ...], JsonName("step_details")]
    attempts: tuple[AttemptView, ...]
    fit_id: str | None
    trim: Annotated[Mapping[str, object] | None, JsonName("compaction"), Stored(Trim | None)]
    budget: Annotated[
        Mapping[str, object] | None,
        Stored(object),
        Doc("The budget of that moment; null where none ruled."),
    ]
    catalog: Annotated[str | None, HIDDEN]
    catalog_name: str | None
    progress: Annotated[int, HIDDEN]
    continues: str | None
    chain: Annotated[tuple[ChainLink, ...], Doc("All plans of the same work, oldest first.")]
    finished_at: datetime | None
    rules: Annotated[
        Mapping[str, str] | None,
        Doc("Version of each rule that decided, by subject; null: not stored then."),
    ] = None

    @property
    @member
    def status(self) -> Annotated[str, Words(("running", "done", "failed"))]:
        """How far it is, in a word."""
        return self.item.outcome if self.item.outcome in ("running", "failed") else "done"

    @property
    @member
    def told_progress(self) -> Annotated[int, JsonName("progress"), Doc("Percent.")]:
        """Percent; what was kept last where it is not done."""
        return 100 if self.status == "done" else self.progress

    @property
    @member
    def told_catalog(
        self,
    ) -> Annotated[
        Mapping[str, object] | None,
        JsonName("catalog"),
        Stored(CatalogJson | None),
        Doc("The catalog that the model saw last."),
    ]:
        """The catalog as a value; whole numbers keep all their digits."""
        return None if self.catalog is None else json.loads(self.catalog)


def find(*, project_id: int, plan_id: str, now: datetime) -> PlanView | None:
    """One plan by the id its response carried; None if it does not exist in the project. At most
    six queries."""
    rows = PlanRecord.objects.filter(project_id=project_id, name=plan_id)
    row = rows_of_items(rows).select_related("project", "rules").first()
    if row is None:
        return None
    others = _chain(row)
    steps: dict[int, list[PlanStep]] = {}
    of_chain = PlanStep.objects.filter(
        project_id=project_id, plan_id__in=[row.pk, *(each.pk for each in others)]
    )
    for step in of_chain.order_by("plan_id", "position"):
        steps.setdefault(step.plan_id, []).append(step)
    tries = PlanAttempt.objects.filter(project_id=project_id, plan_id=row.pk)
    attempts = list(tries.order_by("number"))
    fit = _fit(row)
    is_stalled = has_stalled(row.outcome, row.started_at, now)
    return PlanView(
        item=item(row, _tools(steps.get(row.pk, ())), now),
        cause=_cause(row),
        problem=STALLED if is_stalled else row.cause_detail or None,
        result=_result(row, now),
        steps=tuple(map(_step, steps.get(row.pk, ()))),
        attempts=tuple(map(_attempt, attempts)),
        fit_id=row.fit_name or None,
        trim=fit.trim if fit else None,
        budget=fit.budget if fit else None,
        catalog=_catalog(project_id, attempts),
        catalog_name=row.catalog_name or None,
        progress=row.progress,
        continues=row.continues or None,
        chain=tuple(_link(each, steps.get(each.pk, ()), now) for each in others),
        finished_at=row.finished_at,
        rules=row.rules.versions if row.rules else None,
    )


def _result(row: PlanRecord, now: datetime) -> Any:
    """The answer as it is kept; the whole of it while it waits to be fetched."""
    if row.waiting and row.result_until is not None and row.result_until >= now:
        whole = unseal(row.waiting)
        if whole is not None:
            return json.loads(whole)
    return row.result


def _chain(row: PlanRecord) -> list[PlanRecord]:
    """The plans around one that are linked with it by `continues`, oldest first.

    Looked for among those of the same intent, which the index `plan_by_intent` finds: an agent
    asks for the next step of the same request.
    """
    same = PlanRecord.objects.filter(project_id=row.project_id, intent_sha=row.intent_sha)
    newest = same.order_by("-started_at", "-id").only(
        "name", "continues", "outcome", "started_at", "project_id"
    )
    near = {each.name: each for each in newest[: _MOST_IN_CHAIN * 4]} | {row.name: row}
    after: dict[str, list[str]] = {}
    for each in near.values():
        after.setdefault(each.continues, []).append(each.name)
    linked = {row.name: row}
    before = near.get(row.continues)
    while before is not None and before.name not in linked:
        linked[before.name] = before
        before = near.get(before.continues)
    waiting = [row.name]
    while waiting:
        for name in after.get(waiting.pop(), ()):
            if name not in linked:
                linked[name] = near[name]
                waiting.append(name)
    if len(linked) == 1:
        return []
    return sorted(linked.values(), key=lambda each: (each.started_at, each.pk))[-_MOST_IN_CHAIN:]


def _fit(row: PlanRecord) -> Fit | None:
    if not row.fit_name:
        return None
    return Fit.objects.filter(project_id=row.project_id, name=row.fit_name).first()


def _catalog(project_id: int, attempts: list[PlanAttempt]) -> str | None:
    """What the last call that was to answer had before it; a filter pass sees a list of names."""
    answering = [each for each in attempts if each.purpose in ("plan", "route")]
    if not answering or not answering[-1].catalog_digest:
        return None
    stored = PlanCatalog.objects.filter(project_id=project_id, digest=answering[-1].catalog_digest)
    return stored.values_list("body", flat=True).first()


def _cause(row: PlanRecord) -> Cause | None:
    if not row.cause:
        return None
    return Cause(
        name=FailureCause(row.cause),
        rule=row.cause_rule,
        advice=Advice(row.cause_advice),
        detail=row.cause_detail,
    )


def _tools(steps: Iterable[PlanStep]) -> tuple[str, ...]:
    return tuple(step.entry for step in steps if step.entry)


def _step(row: PlanStep) -> StepView:
    return StepView(
        position=row.position,
        entry=row.entry or None,
        is_pipeline=row.is_pipeline,
        asked=row.asked or None,
        gap=row.gap or None,
        suggestions=tuple(row.suggestions or ()),
        args=row.args,
        args_sha=row.args_sha or None,
        rationale=row.rationale or None,
    )


def _attempt(row: PlanAttempt) -> AttemptView:
    return AttemptView(
        number=row.number,
        purpose=row.purpose,
        call_id=row.call_name,
        model=row.model,
        variant=row.prompt_variant or None,
        response_format=row.response_format or None,
        max_tokens=row.max_tokens,
        reason=row.reason or None,
        cause=row.cause or None,
        finish_reason=row.finish_reason or None,
        latency_ms=row.latency_ms,
        prompt_bytes=row.prompt_bytes,
        system_sha=row.system_sha or None,
        catalog_digest=row.catalog_digest or None,
        catalog_bytes=row.catalog_bytes,
        fit_id=row.fit_name or None,
    )


def _link(row: PlanRecord, steps: Sequence[PlanStep], now: datetime) -> ChainLink:
    return ChainLink(
        id=row.name,
        continues=row.continues or None,
        tools=_tools(steps),
        gaps=sum(not step.entry for step in steps),
        outcome="failed" if has_stalled(row.outcome, row.started_at, now) else row.outcome,
        at=row.started_at,
    )
