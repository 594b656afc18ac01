"""Jobs as a table shows them: how each stands, in a word."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.operations.jobs.kinds import WORDS
from helmdash.pages.parts.words import seconds
from helmdash.queries.jobs import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job. standing: how it goes or how its last run ended; took: how long that was."""

    job: JobState
    words: str
    standing: str
    is_bad: bool
    took: str


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
    )


def _standing(job: JobState) -> tuple[str, bool]:
    if job.is_running:
        return "running", False
    if job.is_broken_off:
        return "broken off; another process goes on", True
    if job.outcome == "failed":
        again = f"failed {job.failures} times" if job.failures > 1 else "failed"
        return f"{again}: {job.told}", True
    if job.outcome == "interrupted":
        return "interrupted by a stop; it goes on", False
    return ("done", False) if job.outcome else ("not done yet", False)
