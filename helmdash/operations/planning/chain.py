"""The steps an agent has already been told, when it asks for one step after the other.

Source: product.md 8 ("a loop guard for single_pick"), spec/helmdeck.md B15 and 27.11. An agent may
name the plan it goes on with (`continues`); otherwise the same caller asking the same again, with
a context this time, right after an answer that promised more steps, goes on with that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.messages import canonical_json
from helmdash.core.plans import PIPELINE_RUN, Step, TakenStep
from helmdash.records.hiding import hide_value
from helmdash.records.models import PlanRecord, PlanStep

# A chain longer than this is a loop with variations: the seed's longest plans have six steps.
MOST_LINKS = 12
# Told by the agent itself, a step comes once. Guessed from its questions, the agent may have tried
# again after a failure: the third time is a loop.
_MOST_TOLD = 1
_MOST_GUESSED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Earlier answers to the same piece of work, oldest first.

    `marks` are (entry, hash of its arguments). `taken` have no arguments where texts are not kept;
    in `known_taken` the hash stands for them. `is_named`: the agent said so, it was not guessed.
    """

    plan_ids: tuple[str, ...] = ()
    marks: tuple[tuple[str, str], ...] = ()
    taken: tuple[TakenStep, ...] = ()
    known_taken: tuple[TakenStep, ...] = ()
    is_named: bool = False

    @property
    def newest(self) -> str:
        """The plan that is gone on with; "" for none."""
        return self.plan_ids[-1] if self.plan_ids else ""

    @property
    def is_full(self) -> bool:
        """So many steps that the next would be one too many."""
        return len(self.plan_ids) >= MOST_LINKS

    def repeats(self, project_id: int, step: Step) -> bool:
        """Whether a step was told before, as often as is too often."""
        if step.entry is None:
            return False
        mark = (step.entry, args_mark(project_id, step))
        return self.marks.count(mark) >= (_MOST_TOLD if self.is_named else _MOST_GUESSED)


def args_mark(project_id: int, step: Step) -> str:
    """A short hash that tells equal arguments, whatever the order of their members."""
    return hide_value(project_id, canonical_json(step.args))


def named_chain(*, project_id: int, plan_id: str) -> Chain | None:
    """The chain that ends in a plan the agent names; None when there is no such plan."""
    plans = _named(project_id, plan_id)
    return _chain(plans, is_named=True) if plans else None


def guessed_chain(
    *, project_id: int, caller: str, intent_sha: str, since: datetime, besides: str
) -> Chain:
    """What the same caller was told for the same intent since then; empty for most."""
    return _chain(_guessed(project_id, caller, intent_sha, since, besides), is_named=False)


def _named(project_id: int, name: str) -> list[PlanRecord]:
    """The plan of this id and those it went on with, oldest first."""
    found: list[PlanRecord] = []
    while name and len(found) < MOST_LINKS:
        plan = PlanRecord.objects.filter(project_id=project_id, name=name, kind="plan").first()
        if plan is None:
            break
        found.append(plan)
        name = plan.continues
    return found[::-1]


def _guessed(
    project_id: int, caller: str, intent_sha: str, since: datetime, besides: str
) -> list[PlanRecord]:
    rows = PlanRecord.objects.filter(
        project_id=project_id,
        intent_sha=intent_sha,
        started_at__gte=since,
        caller=caller,
        kind="plan",
        step_count=1,
        more_steps_likely=True,
    ).exclude(name=besides)
    return list(rows.order_by("-started_at", "-id")[:MOST_LINKS])[::-1]


def _chain(plans: Sequence[PlanRecord], *, is_named: bool) -> Chain:
    steps = PlanStep.objects.filter(plan__in=[plan.pk for plan in plans]).order_by(
        "plan__started_at", "plan_id", "position"
    )
    real = [step for step in steps if step.entry] if plans else []
    return Chain(
        plan_ids=tuple(plan.name for plan in plans),
        marks=tuple((step.entry, step.args_sha) for step in real),
        # A guess is only for the guard: what the agent has really done, its context says.
        taken=tuple(_taken(step) for step in real) if is_named else (),
        known_taken=tuple(_known(step) for step in real) if is_named else (),
        is_named=is_named,
    )


def _taken(step: PlanStep) -> TakenStep:
    args = step.args if isinstance(step.args, dict) else None
    if step.is_pipeline:
        return TakenStep(tool=PIPELINE_RUN, args=args or {"id": step.entry})
    return TakenStep(tool=step.entry, args=args)


def _known(step: PlanStep) -> TakenStep:
    taken = _taken(step)
    return taken if step.args is not None else replace(taken, args={"hash": step.args_sha})
