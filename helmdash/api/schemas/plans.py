"""Plan history: how plans are looked for, and what is told about them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY, Cursor, Limit, QueryText, TimeBound
from helmdash.api.parsing import Shape
from helmdash.api.schemas.planning import PlanAnswer, RouteAnswer
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.planning.plans import Complexity
from helmdash.shapes.answers import Cause, Compaction, KindText, VariantText
from helmdash.shapes.catalogs import AnyCatalog
from helmdash.shapes.fields import STRICT, FreeObject


class ListQuery(TypedDict, total=False):
    """Filters of plans, and the place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: QueryText
    variant: Literal["full_steps", "single_pick"]
    outcome: Literal["running", "ok", "gap", "partial", "failed"]
    kind: Literal["plan", "route"]
    tool: Annotated[QueryText, Field(description="A pack or pipeline that some step uses.")]
    caller: QueryText
    q: Annotated[
        QueryText,
        Field(description="A part of the intent, where it is kept, or the beginning of an id."),
    ]
    since: Annotated[TimeBound, Field(description="Asked for at this time or later.")]
    until: Annotated[TimeBound, Field(description="Asked for before this time.")]
    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


LIST_QUERY = Shape(ListQuery)


class FeedbackIn(TypedDict):
    """Whether the steps of a plan were carried out."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    followed: Annotated[bool, Field(description="Later plans learn from those that were.")]


FEEDBACK = Shape(FeedbackIn)

_Outcome = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": ["running", "ok", "gap", "partial", "failed"]}),
]
_Status = Annotated[str, WithJsonSchema({"type": "string", "enum": ["running", "done", "failed"]})]
_PlanKind = Annotated[str, WithJsonSchema({"type": "string", "enum": ["plan", "route"]})]
_Purpose = Annotated[str, WithJsonSchema({"type": "string", "enum": ["filter", "plan", "route"]})]
# Words that are kept as plain text.
_Complexity = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [each.value for each in Complexity]})
]
_CauseName = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [each.value for each in FailureCause]})
]
_Finish = Annotated[
    str, WithJsonSchema({"type": "string", "enum": [each.value for each in FinishReason]})
]


class PlanCore(TypedDict):
    """What lists and details have in common."""

    id: str
    kind: _PlanKind
    intent: Annotated[str | None, Field(description="Null where the project keeps no texts.")]
    intent_sha: Annotated[str, Field(description="The same for the same request.")]
    model: str
    prompt_variant: VariantText | None
    complexity: _Complexity | None
    outcome: _Outcome
    steps: Annotated[int, Field(description="How many, gaps included.")]
    gaps: int
    tools: Annotated[list[str], Field(description="The entries of its steps, in order.")]
    at: datetime
    latency_ms: int | None
    followed: Annotated[bool | None, Field(description="Null: nobody knows.")]
    caller: str | None
    before_bytes: Annotated[int | None, Field(description="The catalog as it was.")]
    after_bytes: Annotated[int | None, Field(description="The catalog as the last try showed it.")]
    more_steps_likely: bool | None


class PlanItem(PlanCore):
    """One plan or route as lists show it."""

    cause: _CauseName | None


class PlanList(TypedDict):
    """A page of plans, newest first."""

    items: list[PlanItem]
    next: str | None


class StepDetail(TypedDict):
    """One step as it is kept. `entry` and `kind` are null for a gap."""

    order: int
    entry: str | None
    kind: KindText | None
    asked: Annotated[str | None, Field(description="What the model wrote, where it differs.")]
    gap: Annotated[str | None, Field(description="Why no entry was found.")]
    suggestions: Annotated[list[str], Field(description="The nearest entries, for a gap.")]
    args: Annotated[FreeObject | None, Field(description="Null where no texts are kept.")]
    args_sha: Annotated[str | None, Field(description="The same for the same arguments.")]
    rationale: str | None


class AttemptDetail(TypedDict):
    """One call made for a plan; `call_id` leads to all of it."""

    number: int
    purpose: _Purpose
    call_id: str
    model: str
    prompt_variant: VariantText | None
    response_format: str | None
    max_tokens: int | None
    reason: str | None
    cause: _CauseName | None
    finish_reason: _Finish | None
    latency_ms: int | None
    prompt_bytes: int | None
    system_sha: Annotated[
        str | None, Field(description="Calls with the same one share a cacheable prefix.")
    ]
    catalog_bytes: int | None
    fit_id: str | None


class SimilarPlan(TypedDict):
    """A plan for a like intent, and what it picked. `nearness` is 1 for the same words."""

    id: str
    intent: str | None
    nearness: float
    tools: list[str]
    outcome: _Outcome
    at: datetime
    gaps: int
    count: Annotated[int, Field(description="Plans that ask for the same; this is the newest.")]


class ChainLink(TypedDict):
    """A plan of the same piece of work."""

    id: str
    continues: str | None
    tools: list[str]
    outcome: _Outcome
    at: datetime


class PlanDetail(PlanCore):
    """One plan with everything kept about it."""

    status: _Status
    progress: Annotated[int, Field(description="Percent.")]
    plan: Annotated[
        PlanAnswer | RouteAnswer | None,
        Field(description="The answer. Null while it runs, and where no texts are kept."),
    ]
    cause: Cause | None
    problem: Annotated[str | None, Field(description="Why there is no answer, as a sentence.")]
    step_details: list[StepDetail]
    attempts: list[AttemptDetail]
    compaction: Compaction | None
    catalog: Annotated[AnyCatalog | None, Field(description="The catalog that the model saw last.")]
    catalog_name: str | None
    fit_id: str | None
    budget: Annotated[Any, Field(description="The budget of that moment; null where none ruled.")]
    continues: str | None
    chain: Annotated[
        list[ChainLink], Field(description="All plans of the same work, oldest first.")
    ]
    similar: Annotated[list[SimilarPlan], Field(description="Nearest first.")]
    finished_at: datetime | None
    rules: Annotated[
        dict[str, str] | None,
        Field(description="Version of each rule that decided, by subject; null: not stored then."),
    ]


class Feedback(TypedDict):
    """What is known about a plan from now on."""

    id: str
    followed: bool


class PlanGroup(TypedDict):
    """Plans of one intent."""

    intent_sha: str
    count: int
    complexity: NotRequired[_Complexity]
    top_tools: NotRequired[list[str]]
    last_unix: NotRequired[int]
    models: NotRequired[list[str]]


class MyPlans(TypedDict):
    """What the caller has planned lately, the most frequent first."""

    scope: str
    fetched_at: datetime
    groups: list[PlanGroup]
    note: NotRequired[str]


class UsedPack(TypedDict):
    """A pack the caller's plans use."""

    id: str
    calls: int
    last_used_unix: int
    common_inputs: NotRequired[FreeObject]


class UsedPipeline(TypedDict):
    """A pipeline the caller's plans use."""

    id: str
    runs: int
    last_used_unix: int
    common_inputs: NotRequired[FreeObject]


class MyDefaults(TypedDict):
    """What the caller usually does."""

    scope: str
    fetched_at: datetime
    packs: list[UsedPack]
    pipelines: list[UsedPipeline]
    note: NotRequired[str]
