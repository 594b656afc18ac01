"""What people make of suggestions: an ordinary edit of the budget, or nothing, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from django.db.models import Max

from helmdash.answers import to_json
from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.evidence.suggested import UNDECIDED, SuggestionState, before_edit
from helmdash.core.evidence.trialling import TrialState
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.operations.budgets.reverting import revert_edits
from helmdash.operations.database.transactions import write
from helmdash.operations.evidence.refreshing import budget_of, clean_and_all
from helmdash.queries.evidence import trials
from helmdash.queries.evidence.suggestions import SuggestionView, view_of
from helmdash.queries.line_edits import own_edit
from helmdash.records import audit
from helmdash.records.models import Budget, Suggestion

# As much as a budget's evidence may be (core.budgets.budgets).
_EVIDENCE_CHARS: Final = 20_000
# Of one whose edit was taken back.
_REVERTED: Final = "the edit was reverted"
# By the number of a trial, what its row keeps as the result.
_Counted = Mapping[int, dict[str, object]]


class NoSuchSuggestion(Exception):
    """The project has no suggestion with this number."""


class SuggestionDecided(Exception):
    """Somebody has accepted or dismissed it, or edited its budget, or later calls no longer show
    it."""


def accept(*, actor: Actor, project_id: int, suggestion_id: int, now: datetime) -> SuggestionView:
    """Edit the model's budget as suggested, in this project alone; its evidence says why.

    The edit is one like any other: in the history, and reverted there. Raises Forbidden,
    NoSuchSuggestion, SuggestionDecided, BudgetProblems and NoSuchBudget.
    """
    require(actor, Right.DECIDE_SUGGESTIONS, project_id=project_id)
    counted = _count_trials(project_id, suggestion_id)
    return write(partial(_accept, actor, project_id, suggestion_id, counted, now))


def revert(*, actor: Actor, project_id: int, suggestion_id: int, now: datetime) -> SuggestionView:
    """Take back the edit that an accepted suggestion made; it is dismissed then, and keeps what the
    edit had come to.

    Raises Forbidden, NoSuchSuggestion, SuggestionDecided where there is no edit to take back, and
    what `revert_edits` does, where somebody edited the same columns again.
    """
    require(actor, Right.DECIDE_SUGGESTIONS, project_id=project_id)

    def work() -> SuggestionView:
        row = _locked(project_id, suggestion_id)
        edit = row.effect.get("edit") if row.effect else None
        if row.state != SuggestionState.ACCEPTED.value or edit is None:
            raise SuggestionDecided(
                f"This suggestion is {row.state}, and has no edit to take back. See the history of "
                "its budget."
            )
        revert_edits(actor=actor, project_id=project_id, numbers=[edit])
        return _decide(row, actor, SuggestionState.DISMISSED, {}, now, reason=_REVERTED)

    return write(work)


def dismiss(
    *, actor: Actor, project_id: int, suggestion_id: int, reason: str, now: datetime
) -> SuggestionView:
    """Leave the budget as it is; the suggestion comes back only if it becomes another one.

    Raises Forbidden, NoSuchSuggestion and SuggestionDecided.
    """
    require(actor, Right.DECIDE_SUGGESTIONS, project_id=project_id)
    counted = _count_trials(project_id, suggestion_id)

    def work() -> SuggestionView:
        row = lock_undecided(project_id, suggestion_id)
        return _decide(row, actor, SuggestionState.DISMISSED, counted, now, reason=reason)

    return write(work)


def _accept(
    actor: Actor, project_id: int, suggestion_id: int, counted: _Counted, now: datetime
) -> SuggestionView:
    row = lock_undecided(project_id, suggestion_id)
    require_unedited(row)
    told = view_of(row)
    edit = own_edit(
        project_id=project_id, model=row.model, model_key=row.model_key, changes=row.changes
    )
    changed = ", ".join(
        f"{each.field} {each.suggested} (was {each.today})" for each in told.changes
    )
    said = f"{now:%Y-%m-%d}: {changed}. {told.why} {told.method}, {told.calls} calls."
    evidence = f"{said}\n{edit.row.evidence}".strip()[:_EVIDENCE_CHARS]
    edited = store_own_edit(
        actor=actor,
        project_id=project_id,
        edit=replace(edit, changes={**edit.changes, "evidence": evidence}),
    )
    since, until = before_edit(now)
    before = clean_and_all(project_id=project_id, model_key=row.model_key, since=since, until=until)
    edit = Budget.history.filter(id=edited.id).aggregate(newest=Max("history_id"))["newest"]
    row.effect = {"budget_id": edited.id, "edit": edit, "before": before}
    return _decide(row, actor, SuggestionState.ACCEPTED, counted, now)


def require_unedited(row: Suggestion) -> None:
    """Raise SuggestionDecided where the budget is not the one that the suggestion was made for, and
    that whoever accepts it was shown: less of what it was would be more of what it is."""
    budget = budget_of(row.project_id, row.model_key, row.model)
    for field in row.changes:
        now, then = to_json(getattr(budget, field)), row.today.get(field)
        if now != then:
            raise SuggestionDecided(
                f"{field} is {now} by now, and was {then} when this was suggested. Look at the "
                "list again, or dismiss it: what calls show is suggested anew."
            )


def lock_undecided(project_id: int, suggestion_id: int) -> Suggestion:
    """The row, locked, that waits for somebody. Raises NoSuchSuggestion and SuggestionDecided."""
    row = _locked(project_id, suggestion_id)
    if SuggestionState(row.state) not in UNDECIDED:
        by = f" by {row.decided_by}" if row.decided_by else ""
        raise SuggestionDecided(
            f"This suggestion is {row.state} already{by}. Look at the list again."
        )
    return row


def _locked(project_id: int, suggestion_id: int) -> Suggestion:
    rows = Suggestion.objects.select_for_update().filter(project_id=project_id)
    row = rows.filter(pk=suggestion_id).first()
    if row is None:
        raise NoSuchSuggestion(f"There is no suggestion {suggestion_id}.")
    return row


def _count_trials(project_id: int, suggestion_id: int) -> _Counted:
    """What the suggestion's running trial has shown, for `_end_trial`.

    Outside of any transaction: of many calls it takes seconds, and SQLite has one writer.
    """
    rows = trials.running(project_id=project_id).filter(suggestion_id=suggestion_id)
    return {row.pk: trials.stored(trials.read_arms(row)) for row in rows}


def _end_trial(row: Suggestion, counted: _Counted, now: datetime) -> None:
    """A trial that still runs ends with the decision, and keeps what it has shown by then; one that
    began since the count has shown nothing."""
    running = trials.running(project_id=row.project_id).select_for_update()
    for trial in running.filter(suggestion=row):
        if trial.pk in counted:
            trial.result, trial.looked_at = counted[trial.pk], now
        trial.state, trial.ended_at = TrialState.DECIDED.value, now
        trial.save()


def _decide(
    row: Suggestion,
    actor: Actor,
    state: SuggestionState,
    counted: _Counted,
    now: datetime,
    *,
    reason: str = "",
) -> SuggestionView:
    row.state, row.decided_at, row.decided_by = state.value, now, str(actor)[:150]
    row.reason = reason
    row.save()
    _end_trial(row, counted, now)
    audit.note(
        actor=actor,
        project_id=row.project_id,
        kind="suggestion",
        action=state.value,
        subject=f"{row.figure} of {row.model_key}",
    )
    return view_of(row)
