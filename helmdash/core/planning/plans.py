"""Plans and routes as values: what a model's answer turns into once it has been checked.

Source: the shapes of helmdeck ADR 053. `plan_reading` and `route_reading` make them from a decoded
reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# How a plan calls a stored pipeline: this tool with args {"id", "inputs"}, as clients know it.
PIPELINE_RUN: Final = "helmdeck__pipeline-run"
# What a gap step calls.
UNKNOWN_TOOL: Final = "unknown"
# The planner and the router themselves: never a step, never learned from.
META_TOOLS: Final = frozenset({"helmdeck.plan", "helmdeck.route"})
# Steps beyond this are cut: a longer plan is a list, and no agent follows it.
MOST_STEPS: Final = 50
MOST_ALTERNATIVES: Final = 3
# In the rationale of a gap step: between our reason and the model's own words.
MODEL_SAID: Final = " - model said: "


class Complexity(StrEnum):
    """What kind of work a plan is."""

    SINGLE_ACTION = "single-action"
    PIPELINE_DIRECT = "pipeline-direct"
    PACK_CHAIN = "pack-chain"


@dataclass(frozen=True, slots=True)
class ArgFault:
    """One thing wrong with arguments: where (a dotted path; "" is all of them) and what."""

    field: str
    message: str


# Says what is wrong with arguments under a JSON Schema; nothing when they hold. Arguments that are
# missing are not wrong: the planner leaves out what it cannot know (rule S3).
CheckArgs = Callable[[Mapping[str, object], Mapping[str, object]], tuple[ArgFault, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why a step names no entry: a sentence, what the model wrote, and the nearest entries.

    asked: a tool's name; what it wanted, in its words, where it wrote that there is no entry.
    """

    reason: str
    asked: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a plan.

    tool: a pack's name, PIPELINE_RUN or UNKNOWN_TOOL. entry: the catalog's id of the pack or
    pipeline; None for a gap. client_tool: the name MCP clients show the tool by. missing_args:
    dotted paths of required arguments that are left to whoever takes the step (rule S3).
    """

    order: int
    tool: str
    args: Mapping[str, object]
    rationale: str
    entry: str | None
    client_tool: str | None = None
    is_pipeline: bool = False
    gap: Gap | None = None
    arg_faults: tuple[ArgFault, ...] = ()
    missing_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A checked plan.

    more_steps_likely: told by single_pick; None for a whole plan. partial: the reply was cut off,
    or steps of it could not be read. is_done: nothing is left to do (only where steps were taken).
    notes: what was put right, a sentence each.
    """

    steps: tuple[Step, ...]
    rewritten_prompt: str
    complexity: Complexity
    reasoning: str
    more_steps_likely: bool | None = None
    partial: bool = False
    is_done: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedStep:
    """A step that the agent says it has taken, or an earlier answer of ours for the same work.

    args None: nobody knows them.
    """

    tool: str
    args: Mapping[str, object] | None = None


class RouteKind(StrEnum):
    """Whether a route leads to a pack, to a pipeline, or nowhere."""

    PACK = "pack"
    PIPELINE = "pipeline"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A recommended entry; id "" and kind NONE when none serves.

    suggested_inputs None: the model gave none. missing_args: dotted paths of required inputs that
    are not among the suggested ones.
    """

    kind: RouteKind
    id: str
    why: str = ""
    suggested_inputs: Mapping[str, object] | None = None
    arg_faults: tuple[ArgFault, ...] = ()
    missing_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GapWarning:
    """What the catalog lacks, and a pack that would provide it."""

    missing_capability: str
    proposed_pack: Mapping[str, object]
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRoute:
    """A recommendation that names an entry of the catalog, or says that none serves.

    gap_warning None: the catalog lacks nothing. partial: the reply was cut off, or part of it could
    not be read. notes: what was put right, a sentence each.
    """

    recommendation: Destination
    alternatives: tuple[Destination, ...]
    gap_warning: GapWarning | None
    reasoning: str
    partial: bool = False
    notes: tuple[str, ...] = ()


class UnusablePlan(Exception):
    """The answer was JSON, and no plan: nothing in it, or nothing that can be done.

    `rule` names what was wrong ("plan.no_steps", "plan.repeats_itself" ...); the message is a
    sentence.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
