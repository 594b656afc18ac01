"""What people ask of jobs: to start one now, and to end the one that is under way."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models.functions import Now

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations.database.transactions import write
from helmdash.operations.demo import loading
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


def load_demo(*, actor: Actor) -> None:
    """Make the demo project anew, and have a server fill it within some seconds. Nothing where one
    fills it already. Raises Forbidden, as `loading.begin_demo` does.
    """
    leases.make_rows({kinds.DEMO: None})
    loading.require_right(actor)
    if Job.objects.filter(name=kinds.DEMO, until__gt=Now()).exists():
        return
    loading.begin_demo(actor=actor)
    rows = Job.objects.filter(name=kinds.DEMO)
    write(lambda: rows.update(due_at=Now(), outcome="", cancel_by=""))


def load_demo_now(
    *, actor: Actor, tell: Callable[[str], object], show: Callable[[str], None]
) -> bool:
    """The same in this thread. False: a server is at it, and nothing is done. KeyboardInterrupt
    cancels it. tell: hears what that came to; show: of each step.
    """
    loading.require_right(actor)
    if Job.objects.filter(name=kinds.DEMO, until__gt=Now()).exists():
        return False
    loading.begin_demo(actor=actor)
    return kinds.demo_now(tell, show)


def remove_demo(*, actor: Actor) -> bool:
    """Remove the demo project, also while it is filled. False when there was none. Raises
    Forbidden.
    """
    cancel_demo(actor=actor)
    return loading.remove_demo(actor=actor)


def cancel_demo(*, actor: Actor) -> None:
    """Have the filling end after the step that it is at, or not begin; a part may be left.

    Raises Forbidden, as `loading.begin_demo` does.
    """
    loading.require_right(actor)
    rows = Job.objects.filter(name=kinds.DEMO)

    def work() -> None:
        if rows.filter(until__gt=Now()).update(cancel_by=str(actor)[:150]):
            _note(actor, kinds.DEMO, "cancelled")
        else:
            rows.filter(due_at__isnull=False).update(due_at=None, outcome="cancelled")

    write(work)


def _note(actor: Actor, name: str, action: str) -> None:
    audit.note(actor=actor, project_id=None, kind="job", action=action, subject=name)


def _require_one_of(name: str, names: frozenset[str]) -> None:
    if name not in names:
        raise UnknownJob(f"no job that can be asked for is called {name!r}: {sorted(names)}")
