"""Deleting texts that are older than a project wants, while the figures beside them stay.

Texts are messages and answers of calls, what a provider said of an error, intents, arguments and
reasons of plans, what fits were made of with catalogs that came with them, and what a conversation
that has long been silent would go on with: its reminders and packages. Bounded steps, each a short
transaction; to run it again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import connection
from django.db.models import Q, QuerySet

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.calls.kept_details import kept_detail
from helmdash.core.calls.withheld import attempt_without_words
from helmdash.operations.database.steps import StepSize
from helmdash.operations.database.transactions import write_and_pause
from helmdash.operations.retention.erasing import finish_broken_off
from helmdash.operations.retention.expired import CATALOG_SEEN_PRECISION, Step, unheard
from helmdash.operations.retention.expired_messages import delete_unused_messages, unused_messages
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.call_names import Place, calls_at, payloads_at
from helmdash.records.models import (
    Call,
    CallPayload,
    Conversation,
    Fit,
    PlanAttempt,
    PlanCatalog,
    PlanRecord,
    PlanStep,
    Reminder,
    Round,
)

BATCH_ROWS = 2000
_PAYLOAD_TEXTS = Q(content__isnull=False) | Q(message_hashes__isnull=False)
_FIT_TEXTS = ~Q(intent="") | Q(inputs__isnull=False)
_STEP_TEXTS = Q(args__isnull=False) | ~Q(rationale="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsGone:
    """How many lost their texts (or would): calls, plans and fits; and messages that went."""

    calls: int = 0
    plans: int = 0
    fits: int = 0
    messages: int = 0


def text_line(project: ProjectInfo, now: datetime) -> datetime | None:
    """Texts from before this go; None: they stay as long as what they belong to."""
    return None if project.text_days is None else now - timedelta(days=project.text_days)


def count_old_texts(*, project: ProjectInfo, now: datetime) -> TextsGone:
    """How many rows `delete_old_texts` would take texts from; all zero where texts stay."""
    before = text_line(project, now)
    if before is None:
        return TextsGone()
    return TextsGone(
        calls=CallPayload.objects.filter(
            _PAYLOAD_TEXTS, project_id=project.id, started_at__lt=before
        ).count(),
        plans=_plans(project.id, before).exclude(intent="").count(),
        fits=Fit.objects.filter(_FIT_TEXTS, project_id=project.id, created_at__lt=before).count(),
        messages=unused_messages(project.id, before).count(),
    )


def delete_old_texts(
    *,
    actor: Actor,
    project: ProjectInfo,
    now: datetime,
    step: Step = unheard,
    batch: int = BATCH_ROWS,
) -> TextsGone:
    """Delete texts older than the project's `text_days`.

    Raises Forbidden, and what `step` raises: what has gone by then is gone, the rest is there.
    """
    require(actor, Right.ERASE, project_id=project.id)
    before = text_line(project, now)
    if before is None:
        return TextsGone()
    calls = _of_calls(project.id, before, batch, step)
    plans, fits = _of_plans(project.id, before, batch), _of_fits(project.id, before, batch)
    _of_catalogs(project.id, before, batch)
    _of_silent_conversations(project.id, before, batch)
    finish_broken_off(project_id=project.id, now=now)
    messages = delete_unused_messages(project.id, before, batch, partial(step, "messages"))
    return TextsGone(calls=calls, plans=plans, fits=fits, messages=messages)


def _of_calls(project_id: int, before: datetime, batch: int, step: Step) -> int:
    """Walks the calls once, by their index of time: nothing marks those that have no texts left."""
    done, after, size = 0, None, StepSize(batch)
    rows = Call.objects.filter(project_id=project_id, started_at__lt=before)
    while found := _next(rows, after, size.rows):
        after, places = found[-1], [Place(pk, at) for at, pk in found]

        def empty(places: list[Place] = places) -> int:
            _quiet_errors(calls_at(project_id, places).exclude(error_message=""))
            payloads = payloads_at(project_id, places)
            _quiet_attempts(payloads)
            return payloads.filter(_PAYLOAD_TEXTS).update(content=None, message_hashes=None)

        done += write_and_pause(size.timed(empty))
        step("calls looked through for texts", len(places))
    return done


def _quiet_errors(calls: QuerySet[Call]) -> None:
    """What the provider said goes, also where the verdict's sentence quotes it."""
    for row in calls.exclude(cause_detail=""):
        kept = kept_detail(
            row.cause_detail,
            rule=row.cause_rule,
            http_status=row.http_status,
            error_code=row.error_code,
        )
        calls.filter(pk=row.pk, started_at=row.started_at).update(cause_detail=kept)
    calls.update(error_message="")


def _quiet_attempts(payloads: QuerySet[CallPayload]) -> None:
    """Of what providers said of failed attempts stays what stays where no texts are kept."""
    for row in payloads.filter(attempts__isnull=False):
        kept = [dict(attempt_without_words(each)) for each in row.attempts or ()]
        if kept != row.attempts:
            payloads.filter(pk=row.pk, started_at=row.started_at).update(attempts=kept)


def _next(
    rows: QuerySet[Call], after: tuple[datetime, int] | None, batch: int
) -> list[tuple[datetime, int]]:
    if after is not None:
        at, pk = after
        rows = rows.filter(started_at__gte=at).exclude(started_at=at, id__lte=pk)
    return list(rows.order_by("started_at", "id").values_list("started_at", "id")[:batch])


def _of_plans(project_id: int, before: datetime, batch: int) -> int:
    done, size = 0, StepSize(batch)
    rows = _plans(project_id, before).filter(
        ~Q(intent="") | Q(result__isnull=False) | Q(pk__in=_steps(project_id, before))
    )
    while ids := list(rows.order_by("started_at", "id").values_list("id", flat=True)[: size.rows]):

        def empty(ids: list[int] = ids) -> int:
            steps = PlanStep.objects.filter(project_id=project_id, plan_id__in=ids)
            steps.update(args=None, rationale="")
            _quiet_plans(PlanRecord.objects.filter(project_id=project_id, id__in=ids))
            return PlanRecord.objects.filter(project_id=project_id, id__in=ids).update(
                intent="", result=None
            )

        done += write_and_pause(size.timed(empty))
    return done


def _quiet_plans(plans: QuerySet[PlanRecord]) -> None:
    """Of a plan that failed stays what its call's sentence says without the provider's words."""
    for row in plans.exclude(cause_rule=""):
        kept = kept_detail(row.cause_detail, rule=row.cause_rule, http_status=None, error_code="")
        plans.filter(pk=row.pk).update(cause_detail=kept)


def _plans(project_id: int, before: datetime) -> QuerySet[PlanRecord]:
    return PlanRecord.objects.filter(project_id=project_id, started_at__lt=before)


def _steps(project_id: int, before: datetime) -> QuerySet[PlanStep, int]:
    old = PlanStep.objects.filter(_STEP_TEXTS, project_id=project_id, plan__started_at__lt=before)
    return old.values_list("plan_id", flat=True)


def _of_fits(project_id: int, before: datetime, batch: int) -> int:
    done, size = 0, StepSize(batch)
    rows = Fit.objects.filter(_FIT_TEXTS, project_id=project_id, created_at__lt=before)
    while ids := list(rows.order_by("created_at", "id").values_list("id", flat=True)[: size.rows]):
        some = Fit.objects.filter(id__in=ids)
        done += write_and_pause(size.timed(partial(some.update, intent="", inputs=None)))
    return done


def _of_catalogs(project_id: int, before: datetime, batch: int) -> None:
    """Bodies that came with fits, none of which can be made again by now, and that no plan shows.

    Every use renews its day: what a younger fit needs is not among these.
    """
    after, size = 0, StepSize(batch)
    old = PlanCatalog.objects.filter(
        project_id=project_id, latest_used_at__lt=before - CATALOG_SEEN_PRECISION
    ).order_by("id")
    while found := list(old.filter(id__gt=after).values_list("id", "digest")[: size.rows]):
        after = found[-1][0]
        shown = PlanAttempt.objects.filter(
            project_id=project_id, catalog_digest__in=[digest for _, digest in found]
        )
        kept = {*shown.values_list("catalog_digest", flat=True).distinct()}
        ids = [pk for pk, digest in found if digest not in kept]
        some = old.filter(id__in=ids).order_by()
        write_and_pause(size.timed(partial(some._raw_delete, connection.alias)))


def _of_silent_conversations(project_id: int, before: datetime, batch: int) -> None:
    size = StepSize(batch)
    silent = Conversation.objects.filter(project_id=project_id, latest_at__lt=before)
    has_notes = Reminder.objects.filter(project_id=project_id, conversation__in=silent).values(
        "conversation_id"
    )
    has_package = Round.objects.filter(
        project_id=project_id, conversation__in=silent, restart__isnull=False
    )
    rows = silent.filter(Q(pk__in=has_notes) | Q(pk__in=has_package.values("conversation_id")))
    while ids := list(rows.order_by("latest_at", "id").values_list("id", flat=True)[: size.rows]):

        def empty(ids: list[int] = ids) -> int:
            of_them = {"project_id": project_id, "conversation_id__in": ids}
            Round.objects.filter(**of_them).update(restart=None)
            return Reminder.objects.filter(**of_them)._raw_delete(connection.alias)

        write_and_pause(size.timed(empty))
