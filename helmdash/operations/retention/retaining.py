"""All that retention deletes, of every project: for the daily job and for `manage.py retain`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from helmdash.core.access.permissions import Actor
from helmdash.operations import idempotency
from helmdash.operations.access import audit_log, sessions, sign_in_throttle
from helmdash.operations.alerts import forgetting
from helmdash.operations.database.months import make_ahead
from helmdash.operations.database.scrubbing import scrub
from helmdash.operations.evidence import trialling
from helmdash.operations.retention import expired, expired_texts
from helmdash.operations.retention.expired import Retained
from helmdash.operations.retention.expired_texts import TextsGone
from helmdash.operations.retention.months import drop_expired_months
from helmdash.queries.access.access import ProjectInfo, projects


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRetained:
    """What went of one project (or would). None: it keeps its texts, or everything."""

    project: ProjectInfo
    texts: TextsGone | None
    rows: Retained | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthsDropped:
    """Months of calls that went at once, every project's."""

    months: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What went besides: answers that nobody fetched, kept responses, rows on wrong passwords,
    entries of the audit log, sessions that ended, messages of alerts, which calls were on trial."""

    answers: int
    kept: int
    tries: int
    entries: int
    sessions: int
    messages: int = 0
    tried: int = 0


def drop_months(*, actor: Actor, now: datetime) -> MonthsDropped:
    """Drop the months of calls that no project keeps any more, and make those to come.

    Nothing on SQLite. Raises Forbidden.
    """
    # First: what is made ahead looks at a part of all months, for seconds where they are large.
    dropped = drop_expired_months(actor=actor, now=now)
    make_ahead(now=now)
    return MonthsDropped(months=dropped)


def retain(
    *, actor: Actor, now: datetime, step: Callable[[ProjectInfo, str, int], None]
) -> Iterator[ProjectRetained]:
    """Delete what each project keeps no longer; project by project, in short transactions.

    step: hears after each batch of whom what went, and how many of it. To run it again, or twice
    at once, deletes nothing more. Raises Forbidden, and what `step` raises.
    """
    for project in projects():
        texts = rows = None
        own = partial(step, project)
        if project.text_days is not None:
            texts = expired_texts.delete_old_texts(actor=actor, project=project, now=now, step=own)
        if project.retention_days is not None:
            rows = expired.delete_expired(actor=actor, project=project, now=now, step=own)
        else:
            expired.forget_pending(project=project, now=now)
            expired.forget_awaited(project=project, now=now)
        yield ProjectRetained(project=project, texts=texts, rows=rows)


def count(*, now: datetime) -> Iterator[ProjectRetained]:
    """What `retain` would delete."""
    for project in projects():
        texts = rows = None
        if project.text_days is not None:
            texts = expired_texts.count_old_texts(project=project, now=now)
        if project.retention_days is not None:
            rows = expired.count_expired(project=project, now=now)
        yield ProjectRetained(project=project, texts=texts, rows=rows)


def count_calls(*, now: datetime) -> int:
    """How many calls `retain` would delete: counted in an index of each project that deletes."""
    return sum(expired.count_calls(project=project, now=now) for project in projects())


def sweep(*, now: datetime) -> Swept:
    """Delete what belongs to no project, and what was deleted out of SQLite's log."""
    swept = Swept(
        answers=expired.forget_answers(now=now),
        kept=idempotency.forget_kept(now=now),
        tries=sign_in_throttle.clean(now=now),
        entries=audit_log.forget_old(now=now),
        sessions=sessions.forget_ended(now=now),
        messages=forgetting.forget_old(now=now),
        tried=trialling.forget_old(now=now),
    )
    scrub()
    return swept
