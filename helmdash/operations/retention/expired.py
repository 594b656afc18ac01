"""Deleting what is older than a project wants to keep, in bounded batches.

Rows are deleted inside the database, a batch at a time, so that neither memory nor a lock grows
with the number of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.trials import Arm
from helmdash.operations.database.steps import StepSize
from helmdash.operations.database.transactions import write_and_pause
from helmdash.operations.recording.spans.awaited_sessions import AWAITED_WITHIN
from helmdash.operations.retention.erasing import finish_broken_off
from helmdash.operations.retention.expired_messages import delete_unused_messages
from helmdash.operations.rollups import noting, old_rollups
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.call_names import (
    Place,
    calls_at,
    delete_names,
    delete_names_of,
    payloads_at,
)
from helmdash.records.models import (
    AwaitedSpan,
    Call,
    Conversation,
    ConversationMark,
    FailureMark,
    Fit,
    Guidance,
    HealthChange,
    PendingPrompt,
    PlanAttempt,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Reminder,
    Round,
    TriageWord,
    Trial,
    TrialCall,
)

# At most; on SQLite a step writes no more than it does in a moment (operations.database.steps).
BATCH_ROWS = 2000
# A text of a user waits for a reply no longer than this, also in a project that keeps everything:
# it is stored only to be carried over, and an agent that was away for a month starts anew.
PENDING_DAYS = 30
# The time of a shown catalog's latest use is renewed once a day.
CATALOG_SEEN_PRECISION = timedelta(days=1)


# After each batch: what went, and how many of it.
Step = Callable[[str, int], None]


def unheard(what: str, rows: int) -> None:
    """A step that nobody follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """How much was deleted (or would be)."""

    calls: int
    conversations: int
    fits: int
    plans: int = 0


def count_expired(*, project: ProjectInfo, now: datetime) -> Retained:
    """What `delete_expired` would delete. Nothing when the project keeps everything."""
    before = project.kept_since(now)
    if before is None:
        return Retained(calls=0, conversations=0, fits=0)
    return Retained(
        calls=count_calls(project=project, now=now),
        conversations=Conversation.objects.filter(
            project_id=project.id, latest_at__lt=before
        ).count(),
        fits=Fit.objects.filter(project_id=project.id, created_at__lt=before).count(),
        plans=PlanRecord.objects.filter(project_id=project.id, started_at__lt=before).count(),
    )


def count_calls(*, project: ProjectInfo, now: datetime) -> int:
    """How many calls `delete_expired` would delete."""
    before = project.kept_since(now)
    if before is None:
        return 0
    return Call.objects.filter(project_id=project.id, started_at__lt=before).count()


def delete_expired(
    *,
    actor: Actor,
    project: ProjectInfo,
    now: datetime,
    step: Step = unheard,
    batch: int = BATCH_ROWS,
) -> Retained:
    """Delete what is older than the project's retention, with all that nothing refers to then:

    calls, fits, plans, emptied conversations with their reminders and guidance, unused messages,
    catalogs shown for no plan, words on failures of that time. Texts that wait for a reply go in
    every project (`forget_pending`), and so do calls that wait for a span (`forget_awaited`).

    Raises Forbidden, and what `step` raises: what has gone by then is gone, the rest is there.
    """
    require(actor, Right.ERASE, project_id=project.id)
    forget_pending(project=project, now=now, batch=batch)
    forget_awaited(project=project, now=now, batch=batch)
    before = project.kept_since(now)
    if before is None:
        return Retained(calls=0, conversations=0, fits=0)
    where = (project.id, before, batch)
    calls = _in_steps(_delete_calls, *where, partial(step, "calls"))
    if calls:
        _forget_names(project.id, before)
    _in_steps(_delete_trial_calls, *where, partial(unheard, "calls of trials"))
    old_rollups.delete_before(*where)
    conversations = _in_steps(
        partial(_delete_conversations, now=now), *where, partial(step, "conversations")
    )
    fits = _in_steps(_delete_fits, *where, partial(step, "fits"))
    plans = _in_steps(_delete_plans, *where, partial(step, "plans"))
    finish_broken_off(project_id=project.id, now=now)
    delete_unused_messages(*where, partial(step, "messages"))
    _in_steps(_delete_catalogs, *where, partial(step, "catalogs"))
    _in_steps(_delete_failure_marks, *where, partial(step, "words on failures"))
    return Retained(calls=calls, conversations=conversations, fits=fits, plans=plans)


def forget_answers(*, now: datetime) -> int:
    """Drop whole answers that nobody fetched in time; how many those are. Every project.

    A plan made in the background keeps its whole answer, sealed, until it can have been fetched
    (`result_until`), also in a project that keeps no texts.
    """
    late = PlanRecord.objects.filter(result_until__lt=now)
    return late.update(waiting="", result_until=None)


def forget_pending(*, project: ProjectInfo, now: datetime, batch: int = BATCH_ROWS) -> int:
    """Drop texts of users that waited too long for a reply; how many those are.

    Too long is the project's retention, of calls or of texts, and PENDING_DAYS at most.
    """
    kept = (project.retention_days, project.text_days, PENDING_DAYS)
    days = min(each for each in kept if each is not None)
    before = now - timedelta(days=days)
    return _in_steps(_delete_pending, project.id, before, batch, partial(unheard, "prompts"))


def forget_awaited(*, project: ProjectInfo, now: datetime, batch: int = BATCH_ROWS) -> int:
    """Drop what calls without a session wait for, where it has not come within a day; how many
    those are."""
    before = now - AWAITED_WITHIN
    return _in_steps(_delete_awaited, project.id, before, batch, partial(unheard, "spans"))


def _in_steps(
    delete: Callable[[int, datetime, int], int],
    project_id: int,
    before: datetime,
    batch: int,
    step: Callable[[int], None],
) -> int:
    """Delete batch by batch, each in a transaction of its own; how many in all."""
    total, size = 0, StepSize(batch)
    while done := write_and_pause(size.timed(partial(delete, project_id, before, size.rows))):
        total += done
        step(done)
    return total


def _delete_calls(project_id: int, before: datetime, batch: int) -> int:
    noting.note_retained(project_id, before)
    rows = Call.objects.filter(project_id=project_id, started_at__lt=before)
    oldest = rows.order_by("started_at", "id").values_list("name", "id", "started_at")[:batch]
    found = {name: Place(pk, at) for name, pk, at in oldest}
    payloads_at(project_id, found.values())._raw_delete(connection.alias)
    numbers = [place.call_id for place in found.values()]
    TrialCall.objects.filter(pk__in=numbers)._raw_delete(connection.alias)
    calls_at(project_id, found.values())._raw_delete(connection.alias)
    delete_names(project_id, found)
    return len(found)


def _delete_trial_calls(project_id: int, before: datetime, batch: int) -> int:
    """Of calls that went with a whole month, on PostgreSQL: by trial, as their index has it."""
    trials = Trial.objects.filter(project_id=project_id).values("pk")
    rows = TrialCall.objects.filter(
        trial__in=trials, arm__in=[each.value for each in Arm], started_at__lt=before
    )
    numbers = list(rows.values_list("pk", flat=True)[:batch])
    TrialCall.objects.filter(pk__in=numbers)._raw_delete(connection.alias)
    return len(numbers)


def _forget_names(project_id: int, before: datetime) -> None:
    """Further names of calls that are gone: by those, other doors and spans around lead to them."""
    gone = Q(started_at__lt=before)
    after: str | None = ""
    size = StepSize(BATCH_ROWS)
    while after is not None:
        delete = partial(delete_names_of, project_id, gone, after, size.rows)
        after = write_and_pause(size.timed(delete))


def _delete_conversations(project_id: int, before: datetime, batch: int, *, now: datetime) -> int:
    """Conversations whose newest call is too old; a call of theirs may still be younger by its
    own clock, and then the conversation stays."""
    used = Call.objects.filter(project_id=project_id, started_at__lt=before)
    rows = Conversation.objects.filter(
        ~Exists(used.filter(conversation_id=OuterRef("pk"))),
        project_id=project_id,
        latest_at__lt=before,
    )
    found = list(rows.order_by("latest_at", "id").values_list("id", flat=True)[:batch])
    # Locked, as whoever records a call for one does first, and then asked once more.
    locked = Conversation.objects.select_for_update().filter(project_id=project_id)
    found = list(locked.filter(id__in=found).order_by("id").values_list("id", flat=True))
    calls = Call.objects.filter(project_id=project_id, conversation_id__in=found)
    ids = [*{*found} - {*calls.values_list("conversation_id", flat=True)}]
    of_them = {"project_id": project_id, "conversation_id__in": ids}
    Round.objects.filter(**of_them).delete()
    ConversationMark.objects.filter(**of_them)._raw_delete(connection.alias)
    HealthChange.objects.filter(**of_them).delete()
    for model in (Guidance, Reminder, TriageWord):
        model.objects.filter(**of_them)._raw_delete(connection.alias)
    gone = Conversation.objects.filter(project_id=project_id, id__in=ids)
    noting.note_deleted_conversations(project_id, gone, now=now)
    gone._raw_delete(connection.alias)
    return len(ids)


def _delete_pending(project_id: int, before: datetime, batch: int) -> int:
    rows = PendingPrompt.objects.filter(project_id=project_id, at__lt=before)
    ids = list(rows.order_by("at", "id").values_list("id", flat=True)[:batch])
    rows.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)


def _delete_awaited(project_id: int, before: datetime, batch: int) -> int:
    rows = AwaitedSpan.objects.filter(project_id=project_id, told_at__lt=before)
    ids = list(rows.order_by("id").values_list("id", flat=True)[:batch])
    rows.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)


def _delete_fits(project_id: int, before: datetime, batch: int) -> int:
    rows = Fit.objects.filter(project_id=project_id, created_at__lt=before)
    ids = list(rows.order_by("created_at", "id").values_list("id", flat=True)[:batch])
    rows.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)


def _delete_plans(project_id: int, before: datetime, batch: int) -> int:
    rows = PlanRecord.objects.filter(project_id=project_id, started_at__lt=before)
    ids = list(rows.order_by("started_at", "id").values_list("id", flat=True)[:batch])
    PlanStep.objects.filter(project_id=project_id, plan_id__in=ids)._raw_delete(connection.alias)
    PlanAttempt.objects.filter(project_id=project_id, plan_id__in=ids)._raw_delete(connection.alias)
    rows.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)


def _delete_catalogs(project_id: int, before: datetime, batch: int) -> int:
    """Catalogs as they were shown, for plans of before the line only."""
    rows = PlanCatalog.objects.filter(
        project_id=project_id, latest_used_at__lt=before - CATALOG_SEEN_PRECISION
    )
    ids = list(rows.order_by("latest_used_at", "id").values_list("id", flat=True)[:batch])
    rows.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)


def _delete_failure_marks(project_id: int, before: datetime, batch: int) -> int:
    """Words on calls that have gone: each was said of calls from before it."""
    rows = FailureMark.objects.filter(project_id=project_id, at__lt=before)
    ids = list(rows.order_by("id").values_list("id", flat=True)[:batch])
    FailureMark.objects.filter(id__in=ids)._raw_delete(connection.alias)
    return len(ids)
