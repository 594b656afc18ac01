"""What people ask of jobs: to start one now, and to end the one that is under way."""

from __future__ import annotations

from django.db.models.functions import Now

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.database.transactions import write
from helmdash.operations.jobs import kinds, leases
from helmdash.records import audit
from helmdash.records.models import Job


class UnknownJob(Exception):
    """There is no such job, or none that a person may start or end; the message names those."""


def start(*, actor: Actor, name: str) -> None:
    """Have a server do the job within some seconds; one that was cancelled goes on where it was.

    Nothing where it is under way. Raises Forbidden and UnknownJob.
    """
    require(actor, Right.ADMINISTER, project_id=None)
    _require_one_of(name, kinds.startable())
    leases.make_rows({name: None})

    def work() -> None:
        Job.objects.filter(name=name).update(due_at=Now())
        _note(actor, name, "started")

    write(work)


def cancel(*, actor: Actor, name: str) -> None:
    """Have the job end after the step that it is at; what it has done stays done.

    Nothing where it is not under way. Raises Forbidden and UnknownJob.
    """
    require(actor, Right.ADMINISTER, project_id=None)
    _require_one_of(name, kinds.cancellable())
    rows = Job.objects.filter(name=name, until__gt=Now())

    def work() -> None:
        if rows.update(cancel_by=str(actor)[:150]):
            _note(actor, name, "cancelled")

    write(work)


def _note(actor: Actor, name: str, action: str) -> None:
    audit.note(actor=actor, project_id=None, kind="job", action=action, subject=name)


def _require_one_of(name: str, names: frozenset[str]) -> None:
    if name not in names:
        raise UnknownJob(f"no job that can be asked for is called {name!r}: {sorted(names)}")
