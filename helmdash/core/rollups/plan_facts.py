"""What is counted of a plan or route that is over: its outcome and how long it took, for all and by
its model, its kind and the variant of its prompt. One that still runs is counted when it ends."""

from __future__ import annotations

from typing import Final, NamedTuple

from helmdash.core.rollups.buckets import bucket_of

# Words of figures: plans, and those of each outcome behind the head of outcomes.
PLANS: Final = "n"
OUTCOME: Final = "o"
RUNNING: Final = "running"


class PlanFacts(NamedTuple):
    """A plan's columns; `quarter` is the quarter-hour it was asked for in.

    They are kept in this order while they wait to be counted: a new one comes last, with a default.
    """

    quarter: int
    model: str
    kind: str
    prompt_variant: str
    outcome: str
    latency_ms: int | None


def key_of_plan(facts: PlanFacts) -> tuple[str, ...]:
    """Like plans have one: model as it is spelt, kind and variant."""
    return facts.model, facts.kind, facts.prompt_variant


def figures_of_plan(facts: PlanFacts) -> dict[str, int]:
    """The counts of one plan, with the distribution of times that models of calls have as well."""
    counts = {PLANS: 1, f"{OUTCOME}:{facts.outcome}": 1}
    if facts.latency_ms is not None:
        counts[f"L:{bucket_of(facts.latency_ms)}"] = 1
    return counts
