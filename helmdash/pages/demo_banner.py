"""The banner above each page of demo data: how far its loading is."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.queries.jobs import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoLoading:
    """How the loading of the demo goes, or how it ended.

    step: what is done now, "" before the first; share: of 100. is_part: it was cancelled.
    """

    is_under_way: bool
    is_ending: bool
    is_part: bool
    step: str
    share: int


def demo_loading(job: JobState | None) -> DemoLoading | None:
    """None: nobody has asked for it by a page."""
    if job is None:
        return None
    done = (job.steps_done or 0) if job.is_running else 0
    return DemoLoading(
        is_under_way=job.is_running or job.due_at is not None,
        is_ending=job.is_running and job.is_ending,
        is_part=job.outcome == "cancelled",
        step=_step(job),
        share=min(100 * done // (job.steps_all or 1), 100),
    )


def _step(job: JobState) -> str:
    """Of the run under way; before it there is only what the last one left."""
    if job.is_running:
        return job.step
    return f"it failed ({job.told}) and is tried again" if job.outcome == "failed" else ""
