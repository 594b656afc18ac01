"""Plans and routes as they are answered: what was made, by which calls, from what of the catalog.

They are kept as they leave, so that a plan that is read back is the one that was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import BLANK_IS_NULL, HIDDEN, INLINE, OPTIONAL, Doc, answer
from helmdash.core.budgets.budgets import VariantText
from helmdash.core.calls.failures import Cause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.trim import TrimStep
from helmdash.core.planning.plans import Plan, PlannedRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call made for a plan: the filter pass, the plan itself, or a retry."""

    number: int
    purpose: str
    call_id: str
    model: str
    prompt_variant: Annotated[str, BLANK_IS_NULL]
    response_format: str
    max_tokens: int
    reason: Annotated[str, Doc("Why this call was made.")]
    prompt_bytes: int
    system_sha: Annotated[str, HIDDEN]
    catalog_digest: Annotated[str, HIDDEN] = ""
    catalog_bytes: int | None = None
    fit_id: Annotated[str, HIDDEN] = ""
    cause: Cause | None = None
    finish_reason: FinishReason | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCompaction:
    """How the catalog was cut for a plan. The plan's own address has it entry by entry."""

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    dropped: tuple[str, ...]
    steps: tuple[TrimStep, ...]
    entries_kept: int
    entries_removed: int
    versions: Mapping[str, str]
    fit_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGap:
    """What the catalog lacks, and the steps that need it."""

    missing_capability: str
    steps: tuple[int, ...]
    suggestions: tuple[str, ...]


@answer("PlanAnswer")
@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredPlan:
    """A plan whose every step is an entry of the catalog, or says that there is none."""

    plan_id: str
    plan: Annotated[Plan, INLINE]
    gap_warning: Annotated[PlanGap | None, OPTIONAL]
    model: Annotated[str, Doc("The model as it was asked for.")]
    compaction: Annotated[PlanCompaction | None, OPTIONAL, Doc("Only when something was dropped.")]
    prompt_variant_used: VariantText
    attempts: tuple[Attempt, ...]
    latency_ms: int


@answer("RouteAnswer")
@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRoute:
    """The one entry that serves an intent best."""

    plan_id: str
    route: Annotated[PlannedRoute, INLINE]
    model: str
    compaction: Annotated[PlanCompaction | None, OPTIONAL]
    prompt_variant_used: VariantText
    attempts: tuple[Attempt, ...]
    latency_ms: int
