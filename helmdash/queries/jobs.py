"""The jobs that servers do by themselves: who does them, how they went, when they are due next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models.functions import Now

from helmdash.records.models import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """One job. Times are the database's, as is `now`.

    outcome: of the last run that said so: done, interrupted, cancelled or failed; "" before the
    first. step, steps_done and steps_all: how far the run under way is, where it says so.
    due_at: None for one that is done when there is something to do.
    """

    name: str
    holder: str
    is_running: bool
    started_at: datetime | None
    ended_at: datetime | None
    due_at: datetime | None
    outcome: str
    told: str
    failures: int
    now: datetime
    step: str = ""
    steps_done: int | None = None
    steps_all: int | None = None
    is_ending: bool = False
    """Somebody has asked for it."""

    @property
    def is_broken_off(self) -> bool:
        """Who took it last crashed, or was cut off from the database."""
        if self.is_running or self.started_at is None:
            return False
        return self.ended_at is None or self.ended_at < self.started_at

    @property
    def took(self) -> timedelta | None:
        """How long the last run took; None where it did not come to its end, or runs."""
        if self.is_running or self.is_broken_off or not (self.started_at and self.ended_at):
            return None
        return self.ended_at - self.started_at

    @property
    def overdue(self) -> timedelta | None:
        """For how long it should have begun; None where it has no time."""
        if self.due_at is None:
            return None
        return timedelta() if self.is_running else max(self.now - self.due_at, timedelta())


def jobs() -> tuple[JobState, ...]:
    """All of them, by name. One query."""
    return tuple(_state(row) for row in Job.objects.annotate(clock=Now()).order_by("name"))


def find_job(name: str) -> JobState | None:
    """One of them; None where no server has looked for it yet."""
    row = Job.objects.annotate(clock=Now()).filter(name=name).first()
    return _state(row) if row is not None else None


def _state(row: Job) -> JobState:
    until, clock = row.until, row.clock  # type: ignore[attr-defined]  # annotated
    return JobState(
        name=row.name,
        holder=row.holder,
        is_running=until is not None and until > clock,
        started_at=row.started_at,
        ended_at=row.ended_at,
        due_at=row.due_at,
        outcome=row.outcome,
        told=row.told,
        failures=row.failures,
        now=clock,
        step=row.step,
        steps_done=row.steps_done,
        steps_all=row.steps_all,
        is_ending=bool(row.cancel_by),
    )
