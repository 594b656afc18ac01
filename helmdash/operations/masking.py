"""What is masked before a text is stored: the built-in patterns, and those of the project."""

from __future__ import annotations

from time import perf_counter

from helmdash.core.redaction import Masker
from helmdash.queries.access import ProjectInfo


def masker(project: ProjectInfo) -> Masker:
    """A masker for the texts of one call or plan, which together have its time."""
    return Masker(project.redaction_patterns, seconds=perf_counter)
