"""Shapes that several subjects share."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.core.budgets import LimitSource
from helmdash.core.failures import Advice, FailureCause
from helmdash.core.finish import FinishReason
from helmdash.core.health import HealthReason, Level

# Bodies: to the letter ("1" is no number, true is no count), and unknown members are refused.
STRICT = ConfigDict(extra="forbid", strict=True)
# Queries: everything arrives as text.
QUERY = ConfigDict(extra="forbid")
# Objects that may hold more than we read.
OPEN = ConfigDict(extra="ignore", strict=True)

# Words that core keeps as plain text.
StatusText = Annotated[
    str, WithJsonSchema({"type": "string", "enum": ["success", "error", "cancelled"]})
]
KindText = Annotated[str, WithJsonSchema({"type": "string", "enum": ["pack", "pipeline"]})]
VariantText = Annotated[
    str, WithJsonSchema({"type": "string", "enum": ["full_steps", "single_pick"]})
]


class FieldError(TypedDict):
    """One wrong field: its dotted path and what to do."""

    field: str
    message: str


class Cause(TypedDict):
    """Why a call gave nothing usable, the rule that says so, and what to do."""

    name: FailureCause
    rule: str
    advice: Advice
    detail: str


class Attempt(TypedDict):
    """One call made for a plan: the filter pass, the plan itself, or another try."""

    number: int
    purpose: str
    call_id: str
    model: str
    prompt_variant: str | None
    response_format: str
    max_tokens: int
    reason: Annotated[str, Field(description="Why this call was made.")]
    cause: Cause | None
    finish_reason: FinishReason | None
    latency_ms: int | None
    prompt_bytes: int
    catalog_bytes: int | None


class CompactionStep(TypedDict):
    """What one step changed and saved."""

    label: str
    entries: int
    bytes_saved: int


class PlanCompaction(TypedDict):
    """How the catalog was cut for a plan. The plan's own address has it entry by entry."""

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    dropped: list[str]
    steps: list[CompactionStep]
    entries_kept: int
    entries_removed: int
    versions: dict[str, str]
    fit_id: str


class ProblemBody(TypedDict):
    """An error (RFC 9457). The last three come with `plan_failed`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[FieldError]]
    cause: NotRequired[Cause]
    plan_id: NotRequired[str]
    attempts: NotRequired[list[Attempt]]
    compaction: NotRequired[PlanCompaction | None]


class Health(TypedDict):
    """The level of a call with the figures it was judged by."""

    level: Level
    reason: HealthReason | None
    prompt_tokens: int | None
    limit_tokens: int | None
    limit_source: LimitSource | None
    optimal_max_tokens: int | None
    critical_max_tokens: int | None
    hard_util: float | None
    optimal_util: float | None
