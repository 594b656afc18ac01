"""The rows of a plan: opened before the first call, added to with each, closed at the end.

What is kept of its texts follows the project's payload setting: all, redacted, or none. Hashes,
entries and figures are kept in any case.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.failures import Cause
from helmdash.core.planning.answers import Attempt
from helmdash.core.planning.plans import (
    Destination,
    Gap,
    Plan,
    PlannedRoute,
    PlannedStep,
    RouteKind,
)
from helmdash.core.ranking.learning import learned_inputs
from helmdash.core.rollups.plan_facts import RUNNING
from helmdash.core.rules import PLAN_RULES
from helmdash.core.text.tokens import compact_json, json_bytes
from helmdash.operations.database import rule_sets
from helmdash.operations.fitting.bodies import keep_body
from helmdash.operations.fitting.fits import Fitted
from helmdash.operations.planning.asking import Question
from helmdash.operations.planning.chain import args_mark
from helmdash.operations.recording.judged.masking import masker
from helmdash.operations.rollups.noting import note_plan
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.secrets import seal
from helmdash.records.models import Payload, PlanAttempt, PlanRecord, PlanStep
from helmdash.records.rollups.plan_facts import plan_facts_of_row
from helmdash.records.statements.column_values import storable

# A client that had its plan made in the background fetches it within this.
ANSWER_WAITS = timedelta(hours=1)
# As tools are named; anything else may be a sentence of somebody's.
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,80}")
# What may tell who somebody is: learned only where texts are kept.
_PERSONAL = frozenset({"title", "author"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a plan ended. Without `body` it failed, and `cause` or `sentence` says why."""

    body: Mapping[str, object] | None = None
    steps: tuple[PlannedStep, ...] = ()
    outcome: str = "failed"
    complexity: str = ""
    more_steps_likely: bool | None = None
    variant: PromptVariant | None = None
    cause: Cause | None = None
    sentence: str = ""
    fitted: Fitted | None = None
    latency_ms: int | None = None


def open_plan(question: Question, *, waits: bool) -> None:
    """Begin a plan's row. waits: it is made in the background, and its answer will be fetched."""
    PlanRecord.objects.create(
        project_id=question.project.id,
        name=question.plan_id,
        kind=question.ask.kind,
        intent=kept_text(question.project, question.intent),
        intent_sha=question.intent_sha,
        sketch=[list(clause) for clause in question.sketch],
        model=question.model,
        caller=question.caller,
        conversation=question.ask.conversation,
        text_sha=question.text_sha,
        context_bytes=json_bytes(question.ask.context) if question.ask.context else None,
        # A chain that was only guessed at is no fact to be kept.
        continues=question.chain.newest if question.chain.is_named else "",
        catalog_name=question.catalog_name,
        progress=5,
        result_until=question.asked_at + ANSWER_WAITS if waits else None,
        started_at=question.asked_at,
        rules_id=rule_sets.keep(PLAN_RULES),
    )


def drop_plan(question: Question) -> None:
    """Delete the row of a plan that still runs and for which no call was made; one that has calls
    stays."""
    _rows(question).filter(outcome=RUNNING, attempts__isnull=True).delete()


def note_progress(question: Question, percent: int) -> None:
    """Store how far a plan is (0 to 100), for whoever polls it meanwhile."""
    _rows(question).update(progress=percent)


def keep_attempt(question: Question, attempt: Attempt) -> None:
    """Store a call that was made for the plan, with what came of it. Nothing where its conversation
    was erased meanwhile, and the plan with it."""
    plan_id = _rows(question).values_list("id", flat=True).first()
    if plan_id is None:
        return
    PlanAttempt.objects.create(
        project_id=question.project.id,
        plan_id=plan_id,
        number=attempt.number,
        purpose=attempt.purpose,
        call_name=attempt.call_id,
        model=attempt.model,
        prompt_variant=attempt.prompt_variant,
        response_format=attempt.response_format,
        max_tokens=attempt.max_tokens,
        reason=attempt.reason[:300],
        cause=attempt.cause.name.value if attempt.cause else "",
        finish_reason=attempt.finish_reason or "",
        latency_ms=attempt.latency_ms,
        prompt_bytes=attempt.prompt_bytes,
        system_sha=attempt.system_sha,
        catalog_digest=attempt.catalog_digest,
        catalog_bytes=attempt.catalog_bytes,
        fit_name=attempt.fit_id,
    )


def keep_catalog(question: Question, catalog: Mapping[str, object], now: datetime) -> str:
    """Store a catalog as a model is shown it, once for each content; gives its SHA-256 in hex."""
    body = compact_json(catalog)
    digest = hashlib.sha256(body.encode()).hexdigest()
    keep_body(project_id=question.project.id, digest=digest, body=body, now=now)
    return digest


def close_plan(question: Question, ending: Ending, now: datetime) -> None:
    """Store answer or cause, and the steps, in one transaction, and have it counted. Nothing where
    its conversation was erased meanwhile, and the plan with it."""
    cause = ending.cause
    fitted = ending.fitted
    with transaction.atomic():
        plan = _rows(question).select_for_update().first()
        if plan is None:
            return
        # One that was given up before has been counted as that.
        before = plan_facts_of_row(plan)
        plan.outcome = ending.outcome
        plan.prompt_variant = ending.variant.value if ending.variant else ""
        plan.complexity = ending.complexity
        plan.more_steps_likely = ending.more_steps_likely
        plan.step_count = len(ending.steps)
        plan.gap_count = sum(step.entry is None for step in ending.steps)
        plan.cause = cause.name.value if cause else ""
        plan.cause_rule = cause.rule if cause else ""
        plan.cause_advice = cause.advice.value if cause else ""
        said = cause.detail if cause else ending.sentence
        plan.cause_detail = masker(question.project).text(said)[:400]
        plan.fit_name = fitted.fit_id if fitted else ""
        plan.before_bytes = fitted.trim.before_bytes if fitted else None
        plan.after_bytes = fitted.trim.after_bytes if fitted else None
        plan.result = _kept_result(question.project, ending.body)
        plan.waiting = _sealed(question.project, plan, ending.body)
        plan.progress = 100
        plan.latency_ms = ending.latency_ms
        plan.finished_at = now
        plan.save()
        PlanStep.objects.bulk_create(_step_rows(question, plan, ending.steps))
        note_plan(plan.project_id, before, plan_facts_of_row(plan), now=now)


def kept_text(project: ProjectInfo, text: str) -> str:
    """A text as far as the project keeps texts; "" where it keeps none."""
    said = str(storable(text))
    if project.payload == Payload.FULL.value:
        return said
    return masker(project).text(said) if project.payload == Payload.REDACTED.value else ""


def route_steps(route: PlannedRoute) -> tuple[PlannedStep, ...]:
    """A route's recommendation as the one step it stands for; none for an honest "none"."""
    found: Destination = route.recommendation
    if found.kind is RouteKind.NONE:
        return ()
    step = PlannedStep(
        order=1,
        tool=found.id,
        args=found.suggested_inputs or {},
        rationale=found.why,
        entry=found.id,
        is_pipeline=found.kind is RouteKind.PIPELINE,
    )
    return (step,)


def outcome_of(answer: Plan | PlannedRoute) -> str:
    """`ok`; `partial` for an answer that was cut off, `gap` where no tool serves a step."""
    if answer.partial:
        return "partial"
    if isinstance(answer, Plan):
        return "gap" if any(step.entry is None for step in answer.steps) else "ok"
    return "gap" if answer.recommendation.kind is RouteKind.NONE else "ok"


def _rows(question: Question) -> QuerySet[PlanRecord]:
    return PlanRecord.objects.filter(project_id=question.project.id, name=question.plan_id)


def _kept_result(project: ProjectInfo, body: Mapping[str, object] | None) -> object:
    """The answer, as far as the project keeps texts."""
    if body is None or project.payload == Payload.OFF.value:
        return None
    is_redacted = project.payload == Payload.REDACTED.value
    return storable(masker(project).value(body) if is_redacted else body)


def _sealed(project: ProjectInfo, plan: PlanRecord, body: Mapping[str, object] | None) -> str:
    """The whole answer for who asked in the background, unreadable in the database; "" for none."""
    is_kept = project.payload == Payload.FULL.value
    if body is None or is_kept or plan.result_until is None:
        return ""
    return seal(compact_json(storable(body)))


def _step_rows(
    question: Question, plan: PlanRecord, steps: Sequence[PlannedStep]
) -> list[PlanStep]:
    project = question.project
    return [
        PlanStep(
            project_id=project.id,
            plan=plan,
            position=step.order,
            entry=(step.entry or "")[:255],
            is_pipeline=step.is_pipeline,
            asked=_kept_name(project, step.gap.asked)[:255] if step.gap else "",
            gap=_kept_reason(project, step.gap)[:200] if step.gap else "",
            suggestions=list(step.gap.suggestions) if step.gap else None,
            args=_kept_args(project, step),
            args_sha=args_mark(project.id, step),
            learned=_learned(project, step) or None,
            rationale=kept_text(project, step.rationale),
        )
        for step in steps
    ]


def _kept_name(project: ProjectInfo, asked: str) -> str:
    """What the model wrote for a tool: a name in any case, words as other texts."""
    return asked if _TOOL_NAME.fullmatch(asked) else kept_text(project, asked)


def _kept_reason(project: ProjectInfo, gap: Gap) -> str:
    if project.payload != Payload.OFF.value or _TOOL_NAME.fullmatch(gap.asked):
        return str(storable(gap.reason))
    return "no entry of the catalog serves this part"


def _kept_args(project: ProjectInfo, step: PlannedStep) -> object:
    if project.payload == Payload.FULL.value:
        return storable(step.args)
    if project.payload == Payload.REDACTED.value:
        return storable(masker(project).value(step.args))
    return None


def _learned(project: ProjectInfo, step: PlannedStep) -> dict[str, str]:
    if step.entry is None:
        return {}
    args = step.args
    if step.is_pipeline and isinstance(args.get("inputs"), dict):
        args = args["inputs"]  # type: ignore[assignment]  # checked in the line above
    found = learned_inputs(args)
    if project.payload == Payload.OFF.value:
        found = {key: text for key, text in found.items() if key not in _PERSONAL}
    return {key: storable(text) for key, text in found.items()}


def fail_plan(*, project_id: int, plan_id: str, sentence: str, now: datetime) -> None:
    """Close a plan that broke off, with a sentence of 400 characters at most. One that has ended
    already keeps its end."""
    rows = PlanRecord.objects.filter(project_id=project_id, name=plan_id, outcome=RUNNING)
    with transaction.atomic():
        plan = rows.select_for_update().first()
        if plan is None:
            return
        plan.outcome, plan.cause_detail = "failed", sentence[:400]
        plan.progress, plan.finished_at = 100, now
        plan.save(update_fields=["outcome", "cause_detail", "progress", "finished_at"])
        note_plan(project_id, None, plan_facts_of_row(plan), now=now)
