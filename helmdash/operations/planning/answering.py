"""The answer to a plan or a route as JSON: as in helmdeck ADR 053, and what we know besides."""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.planning.plans import (
    MODEL_SAID,
    ArgFault,
    Destination,
    Gap,
    Plan,
    PlannedRoute,
    Step,
)
from helmdash.core.planning.tool_names import is_meta
from helmdash.operations.fitting.fits import Fitted
from helmdash.operations.planning.asking import Question
from helmdash.operations.planning.attempts import Attempt

Body = dict[str, object]


def plan_body(
    question: Question, plan: Plan, variant: PromptVariant, fitted: Fitted, attempts: list[Attempt]
) -> Body:
    """`POST /plan` answers with this. Members that say nothing are left out."""
    body: Body = {
        "plan_id": question.plan_id,
        "steps": [_step(step) for step in plan.steps],
        "rewritten_prompt": plan.rewritten_prompt,
        "complexity": plan.complexity.value,
        "reasoning": plan.reasoning,
        "model": question.model,
        "prompt_variant_used": variant.value,
    }
    if plan.more_steps_likely is not None:
        body["more_steps_likely"] = plan.more_steps_likely
    if plan.is_done:
        body["done"] = True
    warning = _missing(plan.steps)
    if warning is not None:
        body["gap_warning"] = warning
    return body | _common(plan.partial, plan.notes, fitted, attempts)


def route_body(
    question: Question,
    route: PlannedRoute,
    variant: PromptVariant,
    fitted: Fitted,
    attempts: list[Attempt],
) -> Body:
    """`POST /route` answers with this. Members that say nothing are left out."""
    body: Body = {
        "plan_id": question.plan_id,
        "recommendation": _destination(route.recommendation),
        "alternatives": [_destination(each) for each in route.alternatives],
        "reasoning": route.reasoning,
        "model": question.model,
        "prompt_variant_used": variant.value,
    }
    if route.gap_warning is not None:
        body["gap_warning"] = {
            "missing_capability": route.gap_warning.missing_capability,
            "proposed_pack": dict(route.gap_warning.proposed_pack),
            "suggestions": list(route.gap_warning.suggestions),
        }
    return body | _common(route.partial, route.notes, fitted, attempts)


def compaction(fitted: Fitted) -> Body | None:
    """What was cut; None when nothing was. The fit has the whole Trim."""
    trim = fitted.trim
    if not trim.dropped:
        return None
    told: Body = {key: value for key, value in trim.to_json().items() if key not in _LISTS}
    return told | {
        "entries_kept": len(trim.kept),
        "entries_removed": len(trim.removed),
        "fit_id": fitted.fit_id,
    }


_LISTS = ("kept", "removed", "timings_ms")


def _common(
    partial: bool, notes: Sequence[str], fitted: Fitted, attempts: Sequence[Attempt]
) -> Body:
    body: Body = {}
    cut = compaction(fitted)
    if cut is not None:
        body["compaction"] = cut
    if partial:
        body["partial"] = True
    if notes:
        body["notes"] = list(notes)
    body["attempts"] = [attempt.to_json() for attempt in attempts]
    return body


def _step(step: Step) -> Body:
    told: Body = {
        "order": step.order,
        "tool": step.tool,
        "args": dict(step.args),
        "rationale": step.rationale,
    }
    if step.client_tool:
        told["client_tool"] = step.client_tool
    if step.arg_faults:
        told["arg_errors"] = _faults("args", step.arg_faults)
    if step.missing_args:
        told["missing_args"] = list(step.missing_args)
    if step.gap is not None:
        told["gap"] = {
            "reason": step.gap.reason,
            "asked": step.gap.asked,
            "suggestions": list(step.gap.suggestions),
        }
    return told


def _missing(steps: Sequence[Step]) -> Body | None:
    """What the catalog has no entry for."""
    gaps = [step for step in steps if step.gap is not None]
    if not gaps:
        return None
    wanted = dict.fromkeys(_wanted(step, step.gap) for step in gaps if step.gap)
    suggestions = dict.fromkeys(one for step in gaps if step.gap for one in step.gap.suggestions)
    return {
        "missing_capability": "; ".join(wanted),
        "steps": [step.order for step in gaps],
        "suggestions": list(suggestions),
    }


def _wanted(step: Step, gap: Gap) -> str:
    """What a gap step was to do: the tool it asked for, else the model's own words for it."""
    if gap.asked and not is_meta(gap.asked):
        return gap.asked
    _, _, said = step.rationale.partition(MODEL_SAID)
    return said or gap.reason


def _destination(place: Destination) -> Body:
    told: Body = {"kind": place.kind.value, "id": place.id}
    if place.suggested_inputs is not None:
        told["suggested_inputs"] = dict(place.suggested_inputs)
    if place.why:
        told["why"] = place.why
    if place.arg_faults:
        told["arg_errors"] = _faults("suggested_inputs", place.arg_faults)
    if place.missing_args:
        told["missing_args"] = list(place.missing_args)
    return told


def _faults(where: str, faults: Sequence[ArgFault]) -> list[dict[str, str]]:
    """Each with the path that leads to it from its step or recommendation."""
    return [
        {"field": f"{where}.{fault.field}" if fault.field else where, "message": fault.message}
        for fault in faults
    ]
