"""Shapes that several subjects share."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import ConfigDict, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.core.budgets import LimitSource
from helmdash.core.failures import Advice, FailureCause
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


class ProblemBody(TypedDict):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[list[FieldError]]
    cause: NotRequired[Cause]


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
