"""Plans and routes as values: what a model's answer turns into once it has been checked.

Source: the shapes of helmdeck ADR 053. `plan_reading` and `route_reading` make them from a decoded
reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from helmdash.answers import (
    HIDDEN,
    OPTIONAL,
    WHEN_SAID,
    Doc,
    JsonName,
    Most,
    Words,
    answer,
    member,
)

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


@answer("ArgError")
@dataclass(frozen=True, slots=True)
class ArgFault:
    """An argument that the entry's input schema does not accept.

    field: a dotted path; "" is all of them.
    """

    field: str
    message: str


# Says what is wrong with arguments under a JSON Schema; nothing when they hold. Arguments that are
# missing are not wrong: the planner leaves out what it cannot know (rule S3).
CheckArgs = Callable[[Mapping[str, object], Mapping[str, object]], tuple[ArgFault, ...]]


def _below(where: str, faults: Iterable[ArgFault]) -> tuple[ArgFault, ...]:
    """Each with the path that leads to it from its step or recommendation."""
    return tuple(
        ArgFault(f"{where}.{fault.field}" if fault.field else where, fault.message)
        for fault in faults
    )


MissingArgs = Annotated[
    tuple[str, ...],
    WHEN_SAID,
    Doc(
        "Dotted paths of required arguments that nothing in the request told: fill "
        "them in before the call. Left out where there are none."
    ),
]


@answer("StepGap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Why a step names no entry, what the model wrote, and the nearest entries.

    reason: a sentence. asked: a tool's name; what it wanted, in its words, where it wrote that
    there is no entry.
    """

    reason: str
    asked: str
    suggestions: tuple[str, ...] = ()


@answer("Step")
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One call to make. `tool` is `unknown` where the catalog has nothing for it: see `gap`.

    tool: a pack's name, PIPELINE_RUN or UNKNOWN_TOOL. entry: the catalog's id of the pack or
    pipeline; None for a gap. client_tool: the name MCP clients show the tool by. missing_args:
    dotted paths of required arguments that are left to whoever takes the step (rule S3).
    """

    order: int
    tool: str
    args: Mapping[str, object]
    rationale: str
    entry: Annotated[str | None, HIDDEN]
    client_tool: Annotated[
        str | None, WHEN_SAID, Doc("The name that MCP clients show the tool by.")
    ] = None
    is_pipeline: Annotated[bool, HIDDEN] = False
    gap: Annotated[Gap | None, OPTIONAL] = None
    arg_faults: Annotated[tuple[ArgFault, ...], HIDDEN] = ()
    missing_args: MissingArgs = ()

    @property
    @member
    def arg_errors(self) -> Annotated[tuple[ArgFault, ...], WHEN_SAID]:
        """What is wrong with the arguments, each with its path within the step."""
        return _below("args", self.arg_faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A checked plan.

    more_steps_likely: told by single_pick; None for a whole plan. partial: the reply was cut off,
    or steps of it could not be read. is_done: nothing is left to do (only where steps were taken).
    notes: what was put right, a sentence each.
    """

    steps: tuple[PlannedStep, ...]
    rewritten_prompt: Annotated[str, Doc("The plan as an instruction, made from `steps`.")]
    complexity: Complexity
    reasoning: str
    more_steps_likely: Annotated[bool | None, OPTIONAL, Doc("single_pick only.")] = None
    partial: Annotated[
        bool, WHEN_SAID, Doc("The reply was cut off; these steps were complete.")
    ] = False
    is_done: Annotated[bool, WHEN_SAID, JsonName("done"), Doc("Nothing is left to do.")] = False
    notes: Annotated[tuple[str, ...], WHEN_SAID, Doc("What was put right.")] = ()


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
class Alternative:
    """Another entry that may serve."""

    kind: Annotated[RouteKind, Words(tuple(RouteKind))]
    id: str
    why: Annotated[str, WHEN_SAID] = ""


@answer("Recommendation")
@dataclass(frozen=True, slots=True, kw_only=True)
class Destination(Alternative):
    """The entry to use; kind `none` and an empty id where none serves.

    suggested_inputs None: the model gave none. missing_args: dotted paths of required inputs that
    are not among the suggested ones.
    """

    suggested_inputs: Annotated[Mapping[str, object] | None, OPTIONAL] = None
    arg_faults: Annotated[tuple[ArgFault, ...], HIDDEN] = ()
    missing_args: MissingArgs = ()

    @property
    @member
    def arg_errors(self) -> Annotated[tuple[ArgFault, ...], WHEN_SAID]:
        """What is wrong with the suggested inputs, each with its path."""
        return _below("suggested_inputs", self.arg_faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedPack:
    """A pack that would close the gap, as the model imagines it."""

    name: str
    input_schema: object
    output_schema: object
    integration_pattern: str
    why_useful: str


@answer("RouteGap")
@dataclass(frozen=True, slots=True, kw_only=True)
class GapWarning:
    """What the catalog lacks, and a pack that would provide it."""

    missing_capability: str
    proposed_pack: ProposedPack
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRoute:
    """A recommendation that names an entry of the catalog, or says that none serves.

    gap_warning None: the catalog lacks nothing. partial: the reply was cut off, or part of it could
    not be read. notes: what was put right, a sentence each.
    """

    recommendation: Destination
    alternatives: Annotated[tuple[Alternative, ...], Most(MOST_ALTERNATIVES)]
    gap_warning: Annotated[GapWarning | None, OPTIONAL]
    reasoning: str
    partial: Annotated[bool, WHEN_SAID] = False
    notes: Annotated[tuple[str, ...], WHEN_SAID] = ()


class UnusablePlan(Exception):
    """The answer was JSON, and no plan: nothing in it, or nothing that can be done.

    `rule` names what was wrong ("plan.no_steps", "plan.repeats_itself" ...); the message is a
    sentence.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule
