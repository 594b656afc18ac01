"""A small house: loading all shipped budgets for each test would cost more than the test itself."""

from __future__ import annotations

from typing import Any

from helmdash.core.calls.capture import Capture
from helmdash.operations.access import project_settings
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.access.access import ProjectInfo, default_project, project_info
from helmdash.records.models import Budget, Project
from tests import factories


def make_house() -> ProjectInfo:
    """The default project, the fallback as it is shipped, and one row with a known window."""
    Budget.objects.create(
        key="",
        input_tokens=16_000,
        output_tokens=1_500,
        max_catalog_bytes=10_000,
        tier="C",
        allows_llm_filter=True,
    )
    Budget.objects.create(
        key="openai/gpt-4o",
        input_tokens=90_000,
        output_tokens=4_000,
        tier="A",
        context_length=128_000,
    )
    return project_settings.ensure_project()


def make_project(*, slug: str, **over: Any) -> ProjectInfo:
    """Another project."""
    return project_info(Project.objects.create(slug=slug, name=slug.title(), **over))


def record(*captures: Capture, project: ProjectInfo | None = None) -> tuple[Recorded, ...]:
    """Record calls in the default project, or another."""
    return factories.record(*captures, project=project or default_project())
