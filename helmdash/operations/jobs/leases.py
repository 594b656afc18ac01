"""Who does a job: taken by compare-and-set in its row, held by a lease, by the database's clock.

Every statement is one short transaction of its own, so that it works behind a pooler that gives
each of them another connection. The number of the turn is compared, not the holder's name: a
process that was asleep for longer than its lease finds that another one has had a turn since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from helmdash.operations.database.transactions import write
from helmdash.records.models import Job

# A process that was killed holds its job for so long. Its holder renews it three times in that.
LEASE = timedelta(seconds=30)
# A lease that lasts for longer was taken before the clock was set back; its holder, where it lives,
# has it end in time by the next renewal.
_LONGEST_LEASE = 2 * LEASE
# No job is put off for longer than a week, as reports are.
_LONGEST_WAIT = timedelta(days=8)
# A failure is tried again after this, then after twice as long each time, but once an hour.
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A job's row as it was when the database's clock said `now`."""

    name: str
    turns: int
    is_free: bool
    is_due: bool
    has_failed: bool
    cursor: str
    now: datetime
    until: datetime | None = None
    """When its lease ends, unless its holder, who lives, renews it before."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to do a job, until its lease ends."""

    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run came to. due_at: when to run again; None: when there is something to do."""

    told: str
    due_at: datetime | None
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: in words, and in steps of so many. cursor: where it would go on."""

    step: str
    done: int | None = None
    of: int | None = None
    cursor: str | None = None


class LeaseLost(Exception):
    """The lease ran out, and another process has the job."""


def make_rows(due_at: Mapping[str, datetime | None]) -> None:
    """Make the rows that are missing. due_at: when each of these jobs is to be done first."""
    rows = [Job(name=name, due_at=at) for name, at in due_at.items()]
    write(lambda: Job.objects.bulk_create(rows, ignore_conflicts=True))


def look() -> dict[str, Seen]:
    """All jobs by name, in one query."""
    rows = Job.objects.annotate(clock=Now())
    return {
        row.name: Seen(
            name=row.name,
            turns=row.turns,
            is_free=row.until is None or not row.clock < row.until <= row.clock + _LONGEST_LEASE,
            is_due=row.due_at is not None and (row.due_at <= row.clock or _is_set_back(row)),
            has_failed=row.failures > 0,
            cursor=row.cursor,
            now=row.clock,
            until=row.until,
        )
        for row in rows
    }


def _is_set_back(row: Any) -> bool:
    """Whether the clock was set back since a job's row was told when it is due: a host that began
    with a clock of next year would do its retention then."""
    if row.ended_at is not None:
        return bool(row.ended_at > row.clock)
    return bool(row.due_at > row.clock + _LONGEST_WAIT)


def take(seen: Seen, *, holder: str) -> Turn | None:
    """Take a job that was seen free; None where another process was first."""
    is_over = Q(until__lte=Now()) | Q(until__gt=Now() + _LONGEST_LEASE)
    free = Q(until__isnull=True) | is_over
    rows = Job.objects.filter(free, name=seen.name, turns=seen.turns)
    taken = write(
        lambda: rows.update(
            turns=F("turns") + 1,
            holder=holder,
            until=Now() + LEASE,
            started_at=Now(),
            step="",
            steps_done=None,
            steps_all=None,
            cancel_by="",
        )
    )
    return Turn(seen.name, seen.turns + 1) if taken else None


def renew(turn: Turn) -> None:
    """Hold the job for another lease from now on. Raises LeaseLost."""
    if not write(lambda: _held(turn).update(until=Now() + LEASE)):
        raise LeaseLost


def note(turn: Turn, progress: Progress) -> bool:
    """Say how far the turn is; whether somebody asked it to end. Raises LeaseLost."""
    told: dict[str, object] = {
        "step": progress.step[:200], "steps_done": progress.done, "steps_all": progress.of,
    }  # fmt: skip
    if progress.cursor is not None:
        told["cursor"] = progress.cursor
    if not write(lambda: _held(turn).update(**told)):
        raise LeaseLost
    return bool(_held(turn).values_list("cancel_by", flat=True).first())


def end(turn: Turn, done: Done) -> None:
    """Give the job back, done. Raises LeaseLost, as those below do: the row is another's then."""
    _give_back(
        turn, outcome="done", told=done.told[:200], failures=0,
        due_at=done.due_at, cursor=done.cursor,
    )  # fmt: skip


def interrupt(turn: Turn) -> None:
    """Give the job back, to be gone on with at once by whoever comes first."""
    _give_back(turn, outcome="interrupted", told="", due_at=Now())


def cancel(turn: Turn, *, due_at: datetime | None) -> None:
    """Give the job back as somebody asked for; it goes on where it was when it is due again."""
    by = _held(turn).values_list("cancel_by", flat=True).first()
    _give_back(turn, outcome="cancelled", told=f"by {by}" if by else "", due_at=due_at)


def fail(turn: Turn, *, told: str) -> None:
    """Give the job back, failed: to be tried again, later each time.

    told: the kind of fault, without any value of a row.
    """
    failures = _held(turn).values_list("failures", flat=True).first() or 0
    wait = min(_FIRST_RETRY * 2 ** min(failures, _MOST_DOUBLINGS), _LAST_RETRY)
    _give_back(
        turn, outcome="failed", told=told[:200], failures=F("failures") + 1, due_at=Now() + wait
    )


def _give_back(turn: Turn, **values: object) -> None:
    if not write(lambda: _held(turn).update(until=None, ended_at=Now(), **values)):
        raise LeaseLost


def _held(turn: Turn) -> QuerySet[Job]:
    return Job.objects.filter(name=turn.name, turns=turn.number, until__isnull=False)
