"""The answer to a plan or a route, put together from what was made and what it took."""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.planning.answers import (
    AnsweredPlan,
    AnsweredRoute,
    Attempt,
    PlanCompaction,
    PlanGap,
)
from helmdash.core.planning.plans import MODEL_SAID, Gap, Plan, PlannedRoute, PlannedStep
from helmdash.core.planning.tool_names import is_meta
from helmdash.operations.fitting.fits import Fitted
from helmdash.operations.planning.asking import Question


def answer_of(
    question: Question,
    made: Plan | PlannedRoute,
    *,
    variant: PromptVariant,
    fitted: Fitted,
    attempts: Sequence[Attempt],
    latency_ms: int,
) -> AnsweredPlan | AnsweredRoute:
    """The answer to POST /plan or POST /route."""
    if isinstance(made, PlannedRoute):
        return AnsweredRoute(
            plan_id=question.plan_id,
            route=made,
            model=question.model,
            compaction=compaction(fitted),
            prompt_variant_used=variant,
            attempts=tuple(attempts),
            latency_ms=latency_ms,
        )
    return AnsweredPlan(
        plan_id=question.plan_id,
        plan=made,
        gap_warning=_missing(made.steps),
        model=question.model,
        compaction=compaction(fitted),
        prompt_variant_used=variant,
        attempts=tuple(attempts),
        latency_ms=latency_ms,
    )


def compaction(fitted: Fitted) -> PlanCompaction | None:
    """What was cut; None when nothing was. The fit has the whole Trim."""
    trim = fitted.trim
    if not trim.dropped:
        return None
    return PlanCompaction(
        before_bytes=trim.before_bytes,
        after_bytes=trim.after_bytes,
        fits=trim.fits,
        limit_bytes=trim.limit_bytes,
        dropped=trim.dropped,
        steps=trim.steps,
        entries_kept=len(trim.kept),
        entries_removed=len(trim.removed),
        versions=trim.versions,
        fit_id=fitted.fit_id,
    )


def _missing(steps: Sequence[PlannedStep]) -> PlanGap | None:
    """What the catalog has no entry for."""
    gaps = [step for step in steps if step.gap is not None]
    if not gaps:
        return None
    wanted = dict.fromkeys(_wanted(step, step.gap) for step in gaps if step.gap)
    suggestions = dict.fromkeys(one for step in gaps if step.gap for one in step.gap.suggestions)
    return PlanGap(
        missing_capability="; ".join(wanted),
        steps=tuple(step.order for step in gaps),
        suggestions=tuple(suggestions),
    )


def _wanted(step: PlannedStep, gap: Gap) -> str:
    """What a gap step was to do: the tool it asked for, else the model's own words for it."""
    if gap.asked and not is_meta(gap.asked):
        return gap.asked
    _, _, said = step.rationale.partition(MODEL_SAID)
    return said or gap.reason
