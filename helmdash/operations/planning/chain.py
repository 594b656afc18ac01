"""The steps an agent has already been told, when it asks for one step after the other.

An agent that is given one step at a time may be told the same one for ever. An agent may name the
plan it goes on with (`continues`), or list in its context what it did
(`core.planning.completed_steps`). Otherwise the same caller asking for the same text with more and
more context goes on with its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from helmdash.core.planning.plans import PIPELINE_RUN, CompletedStep, PlannedStep
from helmdash.core.text.messages import canonical_json
from helmdash.records.access.keyed_hash import hash_text
from helmdash.records.models import PlanRecord, PlanStep

# A chain longer than this is a loop with variations: the longest plans that were measured have six
# steps.
MOST_LINKS = 12
# The same for a chain that is guessed at. Sixteen contexts that grow by chance are no danger.
_MOST_GUESSED_LINKS = 16
# Told by the agent itself, a step comes once. In a guessed chain several agents may be mixed, or
# one tries again after failures: six in a row, each with more context, are no chance (1 in 720).
_MOST_TOLD = 1
_MOST_GUESSED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What plans for one piece of work have in common, and how much context came with this one."""

    project_id: int
    caller: str
    model: str
    intent_sha: str
    text_sha: str
    context_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Earlier answers to the same piece of work, oldest first.

    `marks` are (entry, hash of its arguments). `completed` have no arguments where texts are not
    kept; in `known_completed` the hash stands for them. `is_named`: the agent said so, it was not
    guessed.
    """

    plan_ids: tuple[str, ...] = ()
    marks: tuple[tuple[str, str], ...] = ()
    completed: tuple[CompletedStep, ...] = ()
    known_completed: tuple[CompletedStep, ...] = ()
    is_named: bool = False

    @property
    def newest(self) -> str:
        """The plan that is gone on with; "" for none."""
        return self.plan_ids[-1] if self.plan_ids else ""

    @property
    def is_full(self) -> bool:
        """So many steps that the next would be one too many."""
        return len(self.plan_ids) >= (MOST_LINKS if self.is_named else _MOST_GUESSED_LINKS)

    def repeats(self, project_id: int, step: PlannedStep) -> bool:
        """Whether a step was told before, as often as is too often."""
        mark = (_name_of(step), args_mark(project_id, step))
        return self.marks.count(mark) >= (_MOST_TOLD if self.is_named else _MOST_GUESSED)


def args_mark(project_id: int, step: PlannedStep) -> str:
    """A short hash that tells equal arguments, whatever the order of their members."""
    return hash_text(project_id, canonical_json(step.args))


def named_chain(*, project_id: int, plan_id: str) -> Chain | None:
    """The chain that ends in a plan the agent names; None when there is no such plan."""
    plans = _named(project_id, plan_id)
    return _chain(plans, is_named=True) if plans else None


def guessed_chain(*, likeness: Likeness, since: datetime, besides: str) -> Chain:
    """The steps that the same agent seems to have been told since it began; empty for most.

    An agent on its way sends more context each time. So the chain is the newest row of plans for
    the same text in which the context grows: another run, or another agent, begins without
    context or sends no more of it than the one before.
    """
    rows = PlanRecord.objects.filter(
        project_id=likeness.project_id,
        intent_sha=likeness.intent_sha,
        started_at__gte=since,
        caller=likeness.caller,
        model=likeness.model,
        text_sha=likeness.text_sha,
        kind="plan",
    ).exclude(name=besides)
    chain: list[PlanRecord] = []
    larger = likeness.context_bytes
    for plan in rows.order_by("-started_at", "-id")[:_MOST_GUESSED_LINKS]:
        size = plan.context_bytes or 0
        if size >= larger or plan.step_count != 1 or not plan.more_steps_likely:
            break
        chain.append(plan)
        larger = size
        if size == 0:
            break  # here it began
    return _chain(chain[::-1], is_named=False)


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


def _chain(plans: Sequence[PlanRecord], *, is_named: bool) -> Chain:
    rows = PlanStep.objects.filter(
        project_id__in={plan.project_id for plan in plans}, plan__in=[plan.pk for plan in plans]
    ).order_by("plan__started_at", "plan_id", "position")
    steps = list(rows) if plans else []
    real = [step for step in steps if step.entry]
    return Chain(
        plan_ids=tuple(plan.name for plan in plans),
        marks=tuple((step.entry or _gap(step.asked), step.args_sha) for step in steps),
        # A guess is only for the guard: what the agent has really done, its context says.
        completed=tuple(_completed(step) for step in real) if is_named else (),
        known_completed=tuple(_known(step) for step in real) if is_named else (),
        is_named=is_named,
    )


def _completed(step: PlanStep) -> CompletedStep:
    args = step.args if isinstance(step.args, dict) else None
    if step.is_pipeline:
        return CompletedStep(tool=PIPELINE_RUN, args=args or {"id": step.entry})
    return CompletedStep(tool=step.entry, args=args)


def _known(step: PlanStep) -> CompletedStep:
    completed = _completed(step)
    return completed if step.args is not None else replace(completed, args={"hash": step.args_sha})


def _name_of(step: PlannedStep) -> str:
    """What a step is compared by. A gap that was told once is told."""
    if step.entry is not None:
        return step.entry
    return _gap(step.gap.asked if step.gap else "")


def _gap(asked: str) -> str:
    return f"gap {asked[:255]}"
