"""Stored plans for tests that read them: rows as operations.planning leaves them behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from helmdash.operations.rollups.noting import note_plan
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.keyed_hash import hash_intent
from helmdash.records.models import PlanAttempt, PlanRecord, PlanStep
from helmdash.records.rollups.plan_facts import plan_facts_of_row
from tests.factories import NOW

MODEL = "openai/gpt-4o"


def make_plan(
    project: ProjectInfo,
    name: str = "plan-1",
    *,
    intent: str = "publish a blog post about the launch",
    entries: Sequence[str] = ("blog.publish",),
    days: float = 1,
    learned: Mapping[str, str] | None = None,
    pipelines: Sequence[str] = (),
    **over: Any,
) -> PlanRecord:
    """A finished plan of `days` ago; an entry "" is a gap. `learned` is that of every step."""
    sha, sketch = hash_intent(project.id, intent)
    gaps = sum(not entry for entry in entries)
    given: dict[str, Any] = {
        "kind": "plan",
        "intent": intent if project.payload == "full" else "",
        "intent_sha": sha,
        "sketch": [list(clause) for clause in sketch],
        "model": MODEL,
        "caller": "owner",
        "prompt_variant": "full_steps",
        "complexity": "pack-chain",
        "outcome": "gap" if gaps else "ok",
        "step_count": len(entries),
        "gap_count": gaps,
        "progress": 100,
        "started_at": NOW - timedelta(days=days),
        "latency_ms": 1_200,
        **over,
    }
    row = PlanRecord.objects.create(project_id=project.id, name=name, **given)
    note_plan(project.id, None, plan_facts_of_row(row), now=row.started_at)
    for position, entry in enumerate(entries, start=1):
        PlanStep.objects.create(
            project_id=project.id,
            plan=row,
            position=position,
            entry=entry,
            is_pipeline=entry in pipelines,
            gap="" if entry else "No entry is called that.",
            asked="" if entry else "made.up",
            args={"topic": "launch"} if project.payload == "full" else None,
            args_sha="0" * 16,
            learned=dict(learned) if learned else None,
        )
    return row


def add_attempt(plan: PlanRecord, number: int = 1, **over: Any) -> PlanAttempt:
    """A call made for the plan."""
    given: dict[str, Any] = {
        "purpose": "plan",
        "call_name": f"{plan.name}-{number}",
        "model": plan.model,
        "prompt_variant": plan.prompt_variant,
        "finish_reason": "stop",
        "latency_ms": 1_100,
        **over,
    }
    return PlanAttempt.objects.create(project_id=plan.project_id, plan=plan, number=number, **given)
