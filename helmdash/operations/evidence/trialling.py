"""Trials of suggestions: begun by a person, looked at and stopped by a job, ended by a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db import IntegrityError

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.budgets.trials import Arm
from helmdash.core.evidence.suggested import SuggestionState
from helmdash.core.evidence.trialling import METHOD, TrialState, is_clearly_worse
from helmdash.operations.budgets.editing import BudgetProblem, BudgetProblems
from helmdash.operations.database.transactions import write, write_and_pause
from helmdash.operations.evidence.deciding import (
    SuggestionDecided,
    lock_undecided,
    require_unedited,
)
from helmdash.queries.evidence import trials
from helmdash.queries.evidence.suggestions import SuggestionView, view_of
from helmdash.queries.evidence.trials import ArmResult
from helmdash.queries.line_edits import own_edit
from helmdash.records import audit
from helmdash.records.models import Suggestion, Trial, TrialCall
from helmdash.records.statements.locking import lock_project

DEFAULT_SHARE: Final = 0.2
# With neither end named: two weeks have every day of the week twice.
DEFAULT_DAYS: Final = 14
# Each one more halves what the others are compared by; the tables of budgets are one for each mix.
MOST_RUNNING: Final = 3
# Which call was in which arm is told for as long as learning looks back.
_KEPT: Final = timedelta(days=90)
# As retention does: a batch of this size holds SQLite's write lock for some tens of milliseconds.
_STEP: Final = 2000


class TrialConflict(Exception):
    """No trial can begin just now: another one of the model runs, or as many as may."""


def begin(
    *,
    actor: Actor,
    project_id: int,
    suggestion_id: int,
    share: float = DEFAULT_SHARE,
    conversations: int | None = None,
    days: int | None = None,
    now: datetime,
) -> SuggestionView:
    """Let a suggested budget rule a share of the model's conversations from now on.

    share: of one. conversations (of both arms), days: end it, whichever comes first; None of both:
    DEFAULT_DAYS. Raises Forbidden, NoSuchSuggestion, SuggestionDecided, TrialConflict, and
    BudgetProblems where the budget cannot be edited so.
    """
    require(actor, Right.DECIDE_SUGGESTIONS, project_id=project_id)
    if conversations is None and days is None:
        days = DEFAULT_DAYS
    return write(
        partial(
            _begin, actor, project_id, suggestion_id, share, conversations, _after(now, days), now
        )
    )


def look(*, now: datetime, go_on: Callable[[], None] = lambda: None) -> int:
    """Count the calls of all trials that run, and end those that are over, do harm, or whose figure
    somebody has edited; how many ended. go_on: called between trials."""
    ended = 0
    for row in trials.running():
        go_on()
        # Counted before the transaction: of many calls it takes seconds, and SQLite has one writer.
        ended += write(partial(_store_look, row.pk, trials.read_arms(row), now))
    return ended


def forget_old(*, now: datetime) -> int:
    """Forget which calls were in trials that ended long ago; how many. In short transactions."""
    old = Trial.objects.filter(ended_at__lt=now - _KEPT).values_list("pk", flat=True)
    calls = TrialCall.objects.filter(trial__in=old).values_list("pk", flat=True)
    gone = 0
    while step := write_and_pause(lambda: _delete_some(list(calls[:_STEP]))):
        gone += step
    return gone


def _delete_some(numbers: list[int]) -> int:
    return TrialCall.objects.filter(pk__in=numbers).delete()[0]


def _begin(
    actor: Actor,
    project_id: int,
    suggestion_id: int,
    share: float,
    conversations: int | None,
    until: datetime | None,
    now: datetime,
) -> SuggestionView:
    lock_project(project_id)
    suggestion = lock_undecided(project_id, suggestion_id)
    _require_sound(suggestion)
    running = trials.running(project_id=project_id)
    if running.filter(suggestion=suggestion).exists():
        raise SuggestionDecided("This suggestion is on trial already. Look at the list again.")
    if running.count() >= MOST_RUNNING:
        raise TrialConflict(
            f"{MOST_RUNNING} trials run in this project already. Decide one of them first."
        )
    if running.filter(model_key=suggestion.model_key).exists():
        raise TrialConflict(
            f"Another suggestion for {suggestion.model_key} is on trial. Decide that one first."
        )
    require_unedited(suggestion)
    try:
        Trial.objects.create(
            project_id=project_id,
            suggestion=suggestion,
            model_key=suggestion.model_key,
            changes=suggestion.changes,
            share=share,
            most_conversations=conversations,
            until=until,
            method=METHOD,
            started_at=now,
            started_by=str(actor)[:150],
        )
    except IntegrityError:
        # Another writer was first between the check and the write.
        raise TrialConflict(f"Another trial of {suggestion.model_key} has just begun.") from None
    suggestion.state = SuggestionState.TRIAL.value
    suggestion.save(update_fields=["state"])
    audit.note(
        actor=actor,
        project_id=project_id,
        kind="suggestion",
        action=SuggestionState.TRIAL.value,
        subject=f"{suggestion.figure} of {suggestion.model_key}",
        changes=(("share", None, share),),
    )
    return view_of(suggestion)


def _require_sound(suggestion: Suggestion) -> None:
    """What accepting would refuse cannot be tried either. Raises BudgetProblems."""
    values: dict[str, Any] = {
        each.name: each.read(suggestion.changes[each.name])
        for each in STORED_FIELDS
        if each.name in suggestion.changes
    }
    edit = own_edit(
        project_id=suggestion.project_id,
        model=suggestion.model,
        model_key=suggestion.model_key,
        changes=values,
    )
    problems = budget_problems(replace(edit.row, **edit.changes))
    if problems:
        raise BudgetProblems(tuple(BudgetProblem(*each) for each in problems))


def _store_look(trial_id: int, found: Mapping[Arm, ArmResult], now: datetime) -> bool:
    """Whether the trial ended by what was counted; nothing where it has ended meanwhile."""
    row = trials.running().select_for_update().filter(pk=trial_id).first()
    if row is None:
        return False
    row.result, row.looked_at = trials.stored(found), now
    today, suggested = found[Arm.TODAY].figures, found[Arm.SUGGESTED].figures
    if _is_edited(row.suggestion):
        row.state = TrialState.DECIDED.value
    elif is_clearly_worse(today, suggested):
        row.state = TrialState.STOPPED.value
    elif (row.until is not None and row.until <= now) or (
        row.most_conversations is not None
        and today.conversations + suggested.conversations >= row.most_conversations
    ):
        row.state = TrialState.FINISHED.value
    is_over = row.state != TrialState.RUNNING.value
    row.ended_at = now if is_over else None
    row.save()
    return is_over


def _is_edited(suggestion: Suggestion) -> bool:
    """Whether somebody gave the figure another value than the one that the trial compares with:
    it would tell nothing, and could not be accepted."""
    try:
        require_unedited(suggestion)
    except SuggestionDecided:
        return True
    return False


def _after(now: datetime, days: int | None) -> datetime | None:
    return None if days is None else now + timedelta(days=days)
