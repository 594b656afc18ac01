"""The plans of the demo project: rows as planning leaves them, without a model being called.

Their calls are recorded as real ones are, and their catalogs through a real fit. Ids
and figures are the same at every load; only times move along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from helmdash.answers import to_json
from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.core.planning.plans import PIPELINE_RUN
from helmdash.core.ranking.learning import learned_inputs
from helmdash.core.rules import PLAN_RULES
from helmdash.core.text.tokens import compact_json
from helmdash.operations.database import rule_sets
from helmdash.operations.demo.fixtures import Fixture, read_fixture, time_of
from helmdash.operations.fitting.fits import Fitted, fit_catalog
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.rollups.noting import note_plan
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.keyed_hash import hash_intent, hash_text
from helmdash.records.models import Call, Fit, PlanAttempt, PlanCatalog, PlanRecord, PlanStep
from helmdash.records.rollups.plan_facts import plan_facts_of_row

# What the instructions around a catalog take: about as much as those of operations.planning.
_AROUND_BYTES = 3_600


def load_plans(*, project: ProjectInfo, caller: str, now: datetime) -> int:
    """Store the plans of the fixture with times up to `now`. Gives the number of calls recorded.

    The calls that lie elsewhere (helmdeck ADR 053's) must be recorded before.
    """
    plans: list[Fixture] = read_fixture("plans")["plans"]
    fits = {told["id"]: _fit(project, told, caller, now) for told in plans}
    captures = [
        capture for told in plans for capture in _captures(told, fits[told["id"]], caller, now)
    ]
    record_calls(project=project, captures=captures, caller=caller, now=now)
    calls: dict[str, list[Call]] = {}
    stories = Call.objects.filter(project_id=project.id, correlation_id__in=list(fits))
    for call in stories.order_by("started_at", "id"):
        calls.setdefault(call.correlation_id, []).append(call)
    for told in plans:
        _store(project, told, fits[told["id"]], calls[told["id"]], caller, now)
    return len(captures)


def _fit(project: ProjectInfo, told: Fixture, caller: str, now: datetime) -> Fitted:
    fitted = fit_catalog(
        actor=SHELL,
        project=project,
        model=told["model"],
        intent=told["intent"],
        catalog=None,
        catalog_name=None,
        context=None,
        defaults=None,
        history=(),
        caller=caller,
        now=now - timedelta(minutes=told.get("minutes_ago", 180)),
    )
    if "flags" not in told:
        return fitted
    # What a filter pass did: no model is called here. Its inputs made another Trim, so none are
    # told, as of a fit from before they were kept.
    trim = replace(fitted.trim, flags=tuple(told["flags"]))
    rows = Fit.objects.filter(project_id=project.id, name=fitted.fit_id)
    rows.update(trim=to_json(trim), inputs=None)
    return replace(fitted, trim=trim)


def _captures(told: Fixture, fitted: Fitted, caller: str, now: datetime) -> list[Capture]:
    """The calls of one plan, each beginning where the one before it ended."""
    if "calls" not in told:
        return []
    at = time_of(told, now)
    found = []
    for number, call in enumerate(told["calls"], start=1):
        trim = fitted.trim
        capture = Capture(
            id=f"{told['id']}-call-{number}",
            model=told["model"],
            provider=told["model"].split("/")[0],
            pack=f"helmdeck.{told['kind']}",
            correlation_id=told["id"],
            attempt=number,
            caller=caller,
            http_status=200,
            started_at=at,
            fit_id=fitted.fit_id,
            sent=SentSizes(bytes=_sent_bytes(told, fitted), messages=2),
        )
        if trim.dropped:
            cut = CapturedTrim(
                before_bytes=trim.before_bytes,
                after_bytes=trim.after_bytes,
                dropped=trim.dropped,
            )
            capture = replace(capture, trim=cut)
        found.append(replace(capture, **call))
        at += timedelta(milliseconds=call["latency_ms"])
    return found


def _sent_bytes(told: Fixture, fitted: Fitted) -> int:
    return fitted.trim.after_bytes + _AROUND_BYTES + len(told["intent"].encode())


def _store(
    project: ProjectInfo,
    told: Fixture,
    fitted: Fitted,
    calls: Sequence[Call],
    caller: str,
    now: datetime,
) -> None:
    answer: Fixture | None = told["answer"]
    steps = _steps(told["kind"], answer)
    gaps = sum("gap" in step for step in steps)
    sha, sketch = hash_intent(project.id, told["intent"])
    last = calls[-1]
    took = sum(call.latency_ms or 0 for call in calls)
    row = PlanRecord(
        project_id=project.id,
        name=told["id"],
        kind=told["kind"],
        intent=told["intent"],
        intent_sha=sha,
        sketch=[list(clause) for clause in sketch],
        model=told["model"],
        caller=caller,
        prompt_variant=told["variant"],
        complexity=(answer or {}).get("complexity", ""),
        outcome=_outcome(answer, gaps),
        step_count=len(steps),
        gap_count=gaps,
        more_steps_likely=told.get("more_steps_likely"),
        continues=told.get("continues", ""),
        fit_name=fitted.fit_id,
        before_bytes=fitted.trim.before_bytes,
        after_bytes=fitted.trim.after_bytes,
        catalog_name="demo",
        progress=100,
        followed=told.get("followed"),
        latency_ms=took,
        started_at=calls[0].started_at,
        finished_at=calls[0].started_at + timedelta(milliseconds=took),
        rules_id=rule_sets.keep(PLAN_RULES),
    )
    if answer is None:
        row.cause, row.cause_rule = last.cause, last.cause_rule
        row.cause_advice, row.cause_detail = last.cause_advice, last.cause_detail
    else:
        row.result = _result(told, answer, took)
    row.save()
    note_plan(project.id, None, plan_facts_of_row(row), now=now)
    PlanStep.objects.bulk_create(
        _step_row(row, position, step) for position, step in enumerate(steps, start=1)
    )
    body = compact_json(fitted.catalog)
    digest = hashlib.sha256(body.encode()).hexdigest()
    PlanCatalog.objects.get_or_create(
        project_id=project.id, digest=digest, defaults={"body": body, "latest_used_at": now}
    )
    PlanAttempt.objects.bulk_create(
        _attempt_row(row, number, attempt, call, digest if call.purpose != "filter" else "")
        for number, (attempt, call) in enumerate(zip(told["attempts"], calls, strict=True), start=1)
    )


def _outcome(answer: Fixture | None, gaps: int) -> str:
    if answer is None:
        return "failed"
    if answer.get("partial"):
        return "partial"
    return "gap" if gaps else "ok"


def _steps(kind: str, answer: Fixture | None) -> list[Fixture]:
    """The steps of a plan; of a route its recommendation, as the one step it stands for."""
    if answer is None:
        return []
    if kind == "plan":
        return list(answer["steps"])
    place = answer["recommendation"]
    args = place.get("suggested_inputs", {})
    if place["kind"] == "pipeline":
        args = {"id": place["id"], "inputs": args}
    tool = PIPELINE_RUN if place["kind"] == "pipeline" else place["id"]
    return [{"tool": tool, "args": args, "rationale": place["why"]}]


def _step_row(plan: PlanRecord, position: int, step: Fixture) -> PlanStep:
    args, gap = step["args"], step.get("gap", {})
    is_pipeline = step["tool"] == PIPELINE_RUN
    entry = args["id"] if is_pipeline else step["tool"]
    return PlanStep(
        project_id=plan.project_id,
        plan=plan,
        position=position,
        entry="" if gap else entry,
        is_pipeline=is_pipeline,
        asked=gap.get("asked", ""),
        gap=gap.get("reason", ""),
        args=args,
        args_sha=hash_text(plan.project_id, compact_json(args)),
        learned=learned_inputs(args.get("inputs", {}) if is_pipeline else args) or None,
        rationale=step["rationale"],
    )


def _attempt_row(
    plan: PlanRecord, number: int, attempt: Fixture, call: Call, digest: str
) -> PlanAttempt:
    return PlanAttempt(
        project_id=plan.project_id,
        plan=plan,
        number=number,
        purpose=call.purpose,
        call_name=call.name,
        model=call.model,
        prompt_variant=call.prompt_variant,
        response_format=call.response_format,
        max_tokens=attempt["max_tokens"],
        reason=attempt["reason"],
        cause=call.cause,
        finish_reason=call.finish_reason,
        latency_ms=call.latency_ms,
        prompt_bytes=call.sent_bytes,
        catalog_digest=digest,
        catalog_bytes=plan.after_bytes if digest else None,
        fit_name=plan.fit_name if digest else "",
    )


def _result(told: Fixture, answer: Fixture, took: int) -> dict[str, object]:
    """The answer as the API would have given it, but for the attempts, which are rows as well."""
    told_answer = dict(answer)
    if "steps" in answer:
        told_answer["steps"] = [
            {"order": order, **step} for order, step in enumerate(answer["steps"], start=1)
        ]
    return {
        "plan_id": told["id"],
        **told_answer,
        "model": told["model"],
        "prompt_variant_used": told["variant"],
        "attempts": [],
        "latency_ms": took,
    }
