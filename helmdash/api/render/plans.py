"""Plans as they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from helmdash.api.schemas import plans as shapes
from helmdash.queries.plans import (
    AttemptView,
    ChainLink,
    PlanItem,
    PlanView,
    SimilarPlan,
    StepView,
)
from helmdash.shapes.jsontext import load_json
from helmdash.shapes.rendering import cause

_STATUS = {"running": "running", "failed": "failed"}


def plan_item(value: PlanItem) -> shapes.PlanItem:
    """A plan as lists show it."""
    return {**_core(value), "cause": value.cause}


def plan_detail(value: PlanView, similar: Sequence[SimilarPlan]) -> shapes.PlanDetail:
    """A plan with what lies beside it."""
    status = _STATUS.get(value.item.outcome, "done")
    return {
        **_core(value.item),
        "status": status,
        "progress": 100 if status == "done" else value.progress,
        "plan": cast("Any", value.result),
        "cause": cause(value.cause),
        "problem": value.problem,
        "step_details": [_step(step) for step in value.steps],
        "attempts": [_attempt(each) for each in value.attempts],
        "compaction": cast("Any", value.trim),
        "catalog": None if value.catalog is None else load_json(value.catalog.encode(), exact=True),
        "catalog_name": value.catalog_name,
        "fit_id": value.fit_id,
        "budget": value.budget,
        "continues": value.continues,
        "chain": [_link(each) for each in value.chain],
        "similar": [_similar(each) for each in similar],
        "finished_at": value.finished_at,
        "rules": None if value.rules is None else dict(value.rules),
    }


def _core(value: PlanItem) -> shapes.PlanCore:
    return {
        "id": value.id,
        "kind": value.kind,
        "intent": value.intent,
        "intent_sha": value.intent_sha,
        "model": value.model,
        "prompt_variant": value.prompt_variant,
        "complexity": value.complexity,
        "outcome": value.outcome,
        "steps": value.steps,
        "gaps": value.gaps,
        "tools": list(value.tools),
        "at": value.at,
        "latency_ms": value.latency_ms,
        "followed": value.followed,
        "caller": value.caller,
        "before_bytes": value.before_bytes,
        "after_bytes": value.after_bytes,
        "more_steps_likely": value.more_steps_likely,
    }


def _step(value: StepView) -> shapes.StepDetail:
    kind = "pipeline" if value.is_pipeline else "pack"
    return {
        "order": value.position,
        "entry": value.entry,
        "kind": kind if value.entry else None,
        "asked": value.asked,
        "gap": value.gap,
        "suggestions": list(value.suggestions),
        "args": None if value.args is None else dict(value.args),
        "args_sha": value.args_sha,
        "rationale": value.rationale,
    }


def _attempt(value: AttemptView) -> shapes.AttemptDetail:
    return {
        "number": value.number,
        "purpose": value.purpose,
        "call_id": value.call_id,
        "model": value.model,
        "prompt_variant": value.variant,
        "response_format": value.response_format,
        "max_tokens": value.max_tokens,
        "reason": value.reason,
        "cause": value.cause,
        "finish_reason": value.finish_reason,
        "latency_ms": value.latency_ms,
        "prompt_bytes": value.prompt_bytes,
        "system_sha": value.system_sha,
        "catalog_bytes": value.catalog_bytes,
        "fit_id": value.fit_id,
    }


def _link(value: ChainLink) -> shapes.ChainLink:
    return {
        "id": value.id,
        "continues": value.continues,
        "tools": list(value.tools),
        "outcome": value.outcome,
        "at": value.at,
    }


def _similar(value: SimilarPlan) -> shapes.SimilarPlan:
    return {
        "id": value.id,
        "intent": value.intent,
        "nearness": value.nearness,
        "tools": list(value.tools),
        "outcome": value.outcome,
        "at": value.at,
        "gaps": value.gaps,
        "count": value.count,
    }
