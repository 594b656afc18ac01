"""Jobs as a table shows them: how each stands, in a word."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.operations.jobs.kinds import WORDS, cancellable, startable
from helmdash.pages.parts.words import seconds
from helmdash.queries.jobs import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job. standing: how it goes or how its last run ended; took: how long that was.

    share: of 100, how far the run under way is; None where nobody knows.
    """

    job: JobState
    words: str
    standing: str
    is_bad: bool
    took: str
    share: int | None
    can_start: bool
    can_cancel: bool


def job_row(job: JobState) -> JobRow:
    """A job of a database; one of a newer release has no words here but its name."""
    standing, is_bad = _standing(job)
    took = job.took
    return JobRow(
        job=job,
        words=WORDS.get(job.name, ""),
        standing=standing,
        is_bad=is_bad,
        took=seconds(took.total_seconds() * 1000) if took is not None else "",
        share=_share(job) if job.is_running else None,
        can_start=job.name in startable() and not job.is_running,
        can_cancel=job.name in cancellable() and job.is_running and not job.is_ending,
    )


def _share(job: JobState) -> int | None:
    if job.steps_done is None or not job.steps_all:
        return None
    return min(100 * job.steps_done // job.steps_all, 100)


def _standing(job: JobState) -> tuple[str, bool]:
    if job.is_running:
        return "ending, as asked" if job.is_ending else "running", False
    if job.is_broken_off:
        return "broken off; another process goes on", True
    if job.outcome == "failed":
        again = f"failed {job.failures} times" if job.failures > 1 else "failed"
        return f"{again}: {job.told}", True
    if job.outcome == "interrupted":
        return "interrupted by a stop; it goes on", False
    if job.outcome == "cancelled":
        return f"cancelled {job.told}".rstrip(), False
    return ("done", False) if job.outcome else ("not done yet", False)
