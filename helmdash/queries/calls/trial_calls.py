"""The calls that were ruled in a trial, and the conversations they belong to."""

from __future__ import annotations

from django.db.models import QuerySet

from helmdash.records.models import Call, TrialCall


def calls_of_trial(project_id: int, trial: str) -> QuerySet[TrialCall, int]:
    """The numbers of its calls. trial: its number, with `:today` or `:suggested` behind it those of
    one arm (core.budgets.trials.TRIAL_PATTERN)."""
    number, _, arm = trial.partition(":")
    found = TrialCall.objects.filter(project_id=project_id, trial_id=int(number))
    return (found.filter(arm=arm) if arm else found).values_list("call_number", flat=True)


def conversations_of_trial(project_id: int, trial: str) -> QuerySet[Call, int | None]:
    """The numbers of the conversations that had its calls, some more than once."""
    calls = Call.objects.filter(project_id=project_id, id__in=calls_of_trial(project_id, trial))
    return calls.values_list("conversation_id", flat=True)
