"""The body of every error, as the API's document tells it; doors.problems writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import OPTIONAL
from helmdash.core.assembly.manifest import AssemblyManifest
from helmdash.core.calls.failures import Cause
from helmdash.core.planning.answers import Attempt, PlanCompaction
from helmdash.doors.problems import FieldFault


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemBody:
    """An error (RFC 9457). After `cause`: of `plan_failed`, then of `over_budget`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: Annotated[tuple[FieldFault, ...] | None, OPTIONAL] = None
    cause: Annotated[Cause | None, OPTIONAL] = None
    plan_id: Annotated[str | None, OPTIONAL] = None
    attempts: Annotated[tuple[Attempt, ...] | None, OPTIONAL] = None
    compaction: Annotated[PlanCompaction | None, OPTIONAL] = None
    estimated_tokens: Annotated[int | None, OPTIONAL] = None
    budget_tokens: Annotated[int | None, OPTIONAL] = None
    over_by: Annotated[int | None, OPTIONAL] = None
    manifest: Annotated[AssemblyManifest | None, OPTIONAL] = None
