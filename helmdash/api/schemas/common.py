"""Shapes that several subjects share, besides those of helmdash.shapes."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.schemas.assembling import Manifest
from helmdash.core.calls.finish import FinishReason
from helmdash.shapes.answers import Cause, CompactionStep

# Words that core keeps as plain text.
StatusText = Annotated[
    str, WithJsonSchema({"type": "string", "enum": ["success", "error", "cancelled"]})
]


class FieldError(TypedDict):
    """One wrong field: its dotted path and what to do."""

    field: str
    message: str


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
    """An error (RFC 9457). After `cause`: of `plan_failed`, then of `over_budget`."""

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
    estimated_tokens: NotRequired[int]
    budget_tokens: NotRequired[int]
    over_by: NotRequired[int]
    manifest: NotRequired[Manifest]
