"""Demo data: a project of its own, so that it can never be mixed into real figures.

The calls are recorded as real ones are; only their times are moved, so that the newest are
a few minutes old whenever they are loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import IntegrityError, connection, transaction

from helmdash.core.access.permissions import SHELL, Actor, Right, require
from helmdash.operations.demo.care import load_care
from helmdash.operations.demo.fixtures import captures_of, read_fixture, time_of
from helmdash.operations.demo.plans import load_plans
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.rollups.folding import take_turn
from helmdash.queries.access.access import project_info
from helmdash.records import audit
from helmdash.records.models import (
    Call,
    CallName,
    CallPayload,
    ClientEvent,
    Conversation,
    ConversationMark,
    Fit,
    Guidance,
    HealthChange,
    Payload,
    PendingPrompt,
    PlanAttempt,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Project,
    Reminder,
    Rollup,
    Round,
    StoredMessage,
    TriageWord,
    UncountedCalls,
)
from helmdash.records.revisions import add_revision

DEMO_SLUG = "demo"
_CALLER = "demo"
# After the fits: calls, plans, conversations that are cared for.
_LARGE_STEPS = 3
# Hears what is done next, and of how many steps how many are done.
Progress = Callable[[str, int, int], object]


_changing = threading.Lock()


class DemoBusy(Exception):
    """Somebody else loads or removes the demo data at this moment."""

    def __init__(
        self, why: str = "Somebody else loads or removes the demo data just now; look again soon."
    ) -> None:
        super().__init__(why)


class DemoTaken(DemoBusy):
    """A project of somebody's own has the short name that the demo project needs."""

    def __init__(self) -> None:
        super().__init__(
            f"A project with calls of its own is called {DEMO_SLUG}: give it another short name "
            "in the admin first."
        )


class NoDemo(Exception):
    """There is no demo project to fill: somebody has removed it meanwhile."""


@contextmanager
def _alone() -> Iterator[None]:
    """Let one at a time of this process load or remove. Raises DemoBusy.

    Of several processes, those are turned away that find the project made or deleted by another
    where the database refuses them. What it refuses besides is a mistake of ours, and rises.
    """
    if not _changing.acquire(blocking=False):
        raise DemoBusy
    try:
        yield
    finally:
        _changing.release()


def load_demo(
    *, actor: Actor, now: datetime, progress: Progress = lambda step, done, of: None
) -> int:
    """Load the demo project afresh, with times up to `now`. Gives the number of calls.

    progress: hears what is done next. Broken off, it leaves a part; loading again begins anew.
    Raises Forbidden (it takes superusers and owners of the default project), DemoBusy, DemoTaken,
    and NoDemo where another process removed it meanwhile.
    """
    with _alone():
        _begin(actor)
        return _fill(now, progress)


def begin_demo(*, actor: Actor) -> None:
    """Make the demo project, with nothing in it yet, in place of the one that there was.

    Raises Forbidden, DemoBusy and DemoTaken, as `load_demo` does.
    """
    with _alone():
        _begin(actor)


def _begin(actor: Actor) -> None:
    _remove(actor)
    if Project.objects.filter(slug=DEMO_SLUG, is_demo=False).exists():
        raise DemoTaken
    _note(actor, "loaded")
    try:
        with transaction.atomic():
            Project.objects.create(
                slug=DEMO_SLUG,
                name="Demo",
                is_demo=True,
                payload=Payload.FULL.value,
                remediation=True,
            )
    except IntegrityError:
        if _project() is None:
            raise
        raise DemoBusy from None


def fill_demo(*, now: datetime, progress: Progress) -> int:
    """Fill the demo project, from its beginning also where a part is in it already. Gives the
    number of calls. Raises NoDemo, DemoBusy, and what `progress` raises, to end it there.
    """
    with _alone():
        return _fill(now, progress)


def _fill(now: datetime, progress: Progress) -> int:
    row = _project()
    if row is None:
        raise NoDemo
    try:
        return _fill_project(row, now, progress)
    except (IntegrityError, Project.DoesNotExist):
        if Project.objects.filter(pk=row.pk).exists():
            raise
        raise NoDemo from None


def _fill_project(row: Project, now: datetime, progress: Progress) -> int:
    told = read_fixture("calls")
    steps = len(told["fits"]) + _LARGE_STEPS

    def tell(step: str, done: int) -> None:
        progress(step, done, steps)

    if row.catalogs.exists():
        tell("removing what there was", 0)
        with transaction.atomic():
            take_turn(wait=True)
            _delete_rows(row)
    body = read_fixture("catalog")
    add_revision(project_id=row.pk, name="demo", body=body, now=now, make_current=True)
    row.refresh_from_db()
    project = project_info(row)
    for number, fit in enumerate(told["fits"]):
        tell(f"fit {number + 1} of {len(told['fits'])}", number)
        fit_catalog(
            actor=SHELL,
            project=project,
            model=fit["model"],
            intent=fit["intent"],
            catalog=None,
            catalog_name=None,
            context=None,
            defaults=None,
            history=(),
            caller=_CALLER,
            now=time_of(fit, now),
        )
    captures = [call for each in told["conversations"] for call in captures_of(each, now)]
    done = len(told["fits"])
    tell(f"recording {len(captures)} calls", done)
    record_calls(project=project, captures=captures, caller=_CALLER, now=now)
    tell("making plans", done + 1)
    planned = load_plans(project=project, caller=_CALLER, now=now)

    cared_for = load_care(
        project=project,
        caller=_CALLER,
        now=now,
        before_each=lambda name: tell(f"caring for {name}", done + 2),
    )
    return len(captures) + planned + cared_for


def remove_demo(*, actor: Actor) -> bool:
    """Delete the demo project with everything in it. False when there was none.

    Raises Forbidden and DemoBusy, as `load_demo` does.
    """
    with _alone():
        return _remove(actor)


def _remove(actor: Actor) -> bool:
    require_right(actor)
    with transaction.atomic():
        # First, for who counts needs the project's row: it has ended, or finds nothing.
        take_turn(wait=True)
        # Whoever fills it in another process waits here with its next row, and finds it gone.
        project = _project(lock=True)
        if project is None:
            return False
        _delete_rows(project)
        project.delete()
        _note(actor, "removed")
    return True


def require_right(actor: Actor) -> None:
    """Raises Forbidden for who may neither load nor remove the demo."""
    default = Project.objects.filter(is_default=True).values_list("pk", flat=True).first()
    require(actor, Right.MANAGE_DEMO, project_id=default)


def _project(*, lock: bool = False) -> Project | None:
    rows = Project.objects.select_for_update() if lock else Project.objects.all()
    return rows.filter(slug=DEMO_SLUG, is_demo=True).first()


def _delete_rows(project: Project) -> None:
    """All that is in it, and its catalogs."""
    # In the order of their foreign keys; none of these rows is referred to from elsewhere.
    for model in (
        CallName,
        CallPayload,
        Call,
        Rollup,
        UncountedCalls,
        HealthChange,
        Guidance,
        Reminder,
        PendingPrompt,
        Round,
        ConversationMark,
        TriageWord,
        ClientEvent,
        Conversation,
        StoredMessage,
        Fit,
        PlanStep,
        PlanAttempt,
        PlanRecord,
        PlanCatalog,
    ):
        model.objects.filter(project=project)._raw_delete(connection.alias)
    Project.objects.filter(pk=project.pk).update(current_catalog=None)
    project.catalogs.all().delete()


def _note(actor: Actor, action: str) -> None:
    default = Project.objects.filter(is_default=True).values_list("pk", flat=True).first()
    audit.note(actor=actor, project_id=default, kind="demo", action=action, subject=DEMO_SLUG)
