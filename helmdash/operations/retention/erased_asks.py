"""Erasing what was asked for a conversation beside its calls: fits, plans and routes that named it,
and the calls that were made for those plans."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import connection, models

from helmdash.core.rollups.figures import Change
from helmdash.core.rollups.plan_facts import RUNNING
from helmdash.operations.database.steps import StepSize
from helmdash.operations.database.transactions import write_and_pause
from helmdash.operations.rollups.noting import note, note_erased_fits
from helmdash.records.call_names import Place, find_places
from helmdash.records.models import Fit, PlanAttempt, PlanRecord, PlanStep
from helmdash.records.rollups.plan_facts import plan_facts_of


class AskedFor(NamedTuple):
    """Plans that named a conversation, by number, and where the calls made for them lie."""

    plans: tuple[int, ...]
    calls: list[Place]


def find_plans(project_id: int, conversation: str, most: int) -> AskedFor:
    """Some of those that are left."""
    rows = PlanRecord.objects.filter(project_id=project_id, conversation=conversation)
    plans = tuple(rows.order_by("id").values_list("id", flat=True)[:most])
    attempts = PlanAttempt.objects.filter(project_id=project_id, plan_id__in=plans)
    names = list(attempts.values_list("call_name", flat=True))
    return AskedFor(plans, list(find_places(project_id, names).values()))


def erase_plans(project_id: int, plans: tuple[int, ...], now: datetime, size: StepSize) -> int:
    """Erase plans with their steps and attempts, and what they added to figures; how many."""

    def erase() -> int:
        rows = PlanRecord.objects.filter(project_id=project_id, id__in=plans)
        over = rows.exclude(outcome=RUNNING).select_for_update()
        changes: list[Change] = [(facts, None) for facts in plan_facts_of(over)]
        note(project_id, changes, now=now)
        for model in (PlanStep, PlanAttempt):
            _delete(model.objects.filter(plan_id__in=plans))
        return _delete(rows)

    return write_and_pause(size.timed(erase))


def erase_fits(project_id: int, conversation: str, now: datetime, batch: int) -> int:
    """Erase the fits that named a conversation, and what they added to figures; how many."""
    gone, size = 0, StepSize(batch)
    while done := write_and_pause(
        size.timed(partial(_erase_fits, project_id, conversation, now, size.rows))
    ):
        gone += done
    return gone


def _erase_fits(project_id: int, conversation: str, now: datetime, batch: int) -> int:
    rows = Fit.objects.filter(project_id=project_id, conversation=conversation)
    some = Fit.objects.filter(id__in=list(rows.order_by("id").values_list("id", flat=True)[:batch]))
    note_erased_fits(project_id, some, now=now)
    return _delete(some)


def _delete(rows: models.QuerySet[models.Model]) -> int:
    return rows._raw_delete(connection.alias) or 0
