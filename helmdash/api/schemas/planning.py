"""Plans and routes: what is asked for them, and their answers.

Source: the inputs and outputs that clients of helmdeck ADR 050 and 053 send and read already.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape
from helmdash.api.schemas.common import Attempt
from helmdash.api.schemas.common import PlanCompaction as Compaction
from helmdash.core.planning.plans import MOST_ALTERNATIVES, Complexity, RouteKind
from helmdash.shapes.answers import VariantText
from helmdash.shapes.asks import AskIn
from helmdash.shapes.fields import FreeObject

ASK = Shape(AskIn)


class ArgError(TypedDict):
    """An argument that the entry's input schema does not accept."""

    field: str
    message: str


MissingArgs = Annotated[
    list[str],
    Field(
        description="Dotted paths of required arguments that nothing in the request told: fill "
        "them in before the call. Left out where there are none."
    ),
]


class StepGap(TypedDict):
    """Why a step names no entry, what the model wrote, and the nearest entries."""

    reason: str
    asked: str
    suggestions: list[str]


class Step(TypedDict):
    """One call to make. `tool` is `unknown` where the catalog has nothing for it: see `gap`."""

    order: int
    tool: str
    client_tool: NotRequired[
        Annotated[str, Field(description="The name that MCP clients show the tool by.")]
    ]
    args: FreeObject
    rationale: str
    arg_errors: NotRequired[list[ArgError]]
    missing_args: NotRequired[MissingArgs]
    gap: NotRequired[StepGap]


class PlanGap(TypedDict):
    """What the catalog lacks, and the steps that need it."""

    missing_capability: str
    steps: list[int]
    suggestions: list[str]


class PlanAnswer(TypedDict):
    """A plan whose every step is an entry of the catalog, or says that there is none."""

    plan_id: str
    steps: list[Step]
    rewritten_prompt: Annotated[
        str, Field(description="The plan as an instruction, made from `steps`.")
    ]
    complexity: Complexity
    reasoning: str
    model: Annotated[str, Field(description="The model as it was asked for.")]
    compaction: NotRequired[
        Annotated[Compaction, Field(description="Only when something was dropped.")]
    ]
    prompt_variant_used: VariantText
    more_steps_likely: NotRequired[Annotated[bool, Field(description="single_pick only.")]]
    partial: NotRequired[
        Annotated[bool, Field(description="The reply was cut off; these steps were complete.")]
    ]
    done: NotRequired[Annotated[bool, Field(description="Nothing is left to do.")]]
    gap_warning: NotRequired[PlanGap]
    notes: NotRequired[Annotated[list[str], Field(description="What was put right.")]]
    attempts: list[Attempt]
    latency_ms: int


_Kind = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [each.value for each in RouteKind]})
]


class Recommendation(TypedDict):
    """The entry to use; kind `none` and an empty id where none serves."""

    kind: _Kind
    id: str
    suggested_inputs: NotRequired[FreeObject]
    why: NotRequired[str]
    arg_errors: NotRequired[list[ArgError]]
    missing_args: NotRequired[MissingArgs]


class Alternative(TypedDict):
    """Another entry that may serve."""

    kind: _Kind
    id: str
    why: NotRequired[str]


class ProposedPack(TypedDict):
    """A pack that would close the gap, as the model imagines it."""

    name: str
    input_schema: Any
    output_schema: Any
    integration_pattern: str
    why_useful: str


class RouteGap(TypedDict):
    """What the catalog lacks, and a pack that would provide it."""

    missing_capability: str
    proposed_pack: ProposedPack
    suggestions: list[str]


class RouteAnswer(TypedDict):
    """The one entry that serves an intent best."""

    plan_id: str
    recommendation: Recommendation
    alternatives: Annotated[list[Alternative], Field(max_length=MOST_ALTERNATIVES)]
    gap_warning: NotRequired[RouteGap]
    reasoning: str
    model: str
    compaction: NotRequired[Compaction]
    prompt_variant_used: VariantText
    partial: NotRequired[bool]
    notes: NotRequired[list[str]]
    attempts: list[Attempt]
    latency_ms: int


class Accepted(TypedDict):
    """Work that goes on in the background: ask at the address of `Location` how far it is."""

    plan_id: str
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": ["running"]})]
    progress: Annotated[int, Field(description="Percent.")]
