"""Making suggestions anew from rollups: a model at a time, in a short transaction each, and only
where its calls, its budget or a method are not what they were the last time.

What was dismissed stays so until something else is suggested; what is no longer shown is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from django.db.models import Count, Max

from helmdash.answers import to_json
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.learning import METHODS
from helmdash.core.evidence.suggested import (
    Learned,
    Suggested,
    SuggestionState,
    after_edit,
    suggested,
)
from helmdash.core.rollups.figures import CALLS, Marginal
from helmdash.operations.database.transactions import write
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.evidence.learned import (
    LOOKS_BACK,
    latest_spelling,
    learned_of,
    models_to_learn,
)
from helmdash.records.models import Budget, BudgetAlias, LearnedModel, RollupState, Suggestion

# Of one upstream alone: what a server or its operator decides. All else is the model's.
_OF_UPSTREAMS: Final = frozenset({Figure.INPUT_TOKENS, Figure.CONTEXT_LENGTH})
# A number that moved by less is the same suggestion, which somebody has answered already.
_ANOTHER: Final = 1.25
# What a suggestion tells of the calls: another one where that is more, so that old ones get it.
_TOLD: Final = "numbers"
# Without a new call hours still fall out of the time looked at.
_AT_LEAST_EACH: Final = timedelta(days=1)


def projects_with_news(after: int) -> tuple[tuple[int, int], ...]:
    """Projects whose rollups have changed after a fold, each with the number of its newest."""
    rows = RollupState.objects.filter(folded_to__gt=after).order_by("folded_to")
    return tuple(
        (project_id, folded) for project_id, folded in rows.values_list("pk", "folded_to") if folded
    )


def newest_edits() -> str:
    """Another text whenever a budget or an alias of a model was edited, by whomever."""
    # Counted as well: of two edits whose transactions overlap, the older may be seen last.
    told = [
        row.history.aggregate(newest=Max("history_id"), rows=Count("history_id"))
        for row in (Budget, BudgetAlias)
    ]
    return "-".join(str(each[name] or 0) for each in told for name in ("newest", "rows"))


def refresh(*, project_id: int, now: datetime, go_on: Callable[[], None] = lambda: None) -> int:
    """Make the suggestions of a project anew; how many are open. go_on: called between models."""
    known = models_to_learn(project_id=project_id, now=now)
    before = LearnedModel.objects.filter(project_id=project_id, learned_at__gt=now - _AT_LEAST_EACH)
    digests = dict(before.values_list("model_key", "digest"))
    for model_key, calls in known.items():
        go_on()
        model = latest_spelling(project_id=project_id, model_key=model_key, now=now)
        budget = budget_of(project_id, model_key, model)
        digest = _digest(model, calls, budget)
        if digests.get(model_key) != digest:
            learned = learned_of(project_id=project_id, model_key=model_key, model=model, now=now)
            found = _chosen(learned, budget)
            if write(partial(_store, project_id, model_key, model, found, budget, now)):
                write(partial(_note, project_id, model_key, digest, now))
    stale = Suggestion.objects.filter(project_id=project_id, state=SuggestionState.OPEN.value)
    stale.exclude(model_key__in=known).update(state=SuggestionState.GONE.value, decided_at=now)
    _measure(project_id, now)
    return Suggestion.objects.filter(
        project_id=project_id, state=SuggestionState.OPEN.value
    ).count()


def budget_of(project_id: int, model_key: str, model: str) -> EffectiveBudget:
    """The budget that a model's suggestions are held against: today's, without trials."""
    return budgets.table(project_id=project_id).lookup(model, key=model_key)


def _digest(model: str, calls: str, budget: EffectiveBudget) -> str:
    told = "\n".join((model, calls, repr(budget), *METHODS, _TOLD))
    return blake2b(told.encode(), digest_size=16).hexdigest()


def _note(project_id: int, model_key: str, digest: str, now: datetime) -> None:
    LearnedModel.objects.update_or_create(
        project_id=project_id,
        model_key=model_key,
        defaults={"digest": digest, "learned_at": now},
    )


def clean_and_all(
    *, project_id: int, model_key: str, since: datetime, until: datetime | None
) -> dict[str, int] | None:
    """Calls of a model in a range, and the clean ones; None where the range is not counted."""
    found = rollups.figures(
        project_id=project_id,
        marginal=Marginal.MODEL,
        since=since,
        until=until,
        words=[model_key],
    )
    if found is None:
        return None
    totals = found.totals().values()
    return {
        "calls": sum(counts.get(CALLS, 0) for counts in totals),
        "clean": sum(counts.get("o:clean", 0) for counts in totals),
    }


def _chosen(
    learned: Iterable[Learned], budget: EffectiveBudget
) -> dict[tuple[str, Figure], Suggested]:
    """By upstream and figure; of one upstream only what all calls together do not suggest."""
    found: dict[tuple[str, Figure], Suggested] = {}
    for each in learned:
        for one in suggested(each, budget):
            is_said = ("", one.figure) in found
            if not one.upstream or (one.figure in _OF_UPSTREAMS and not is_said):
                found[one.upstream, one.figure] = one
    return found


def _store(
    project_id: int,
    model_key: str,
    model: str,
    found: Mapping[tuple[str, Figure], Suggested],
    budget: EffectiveBudget,
    now: datetime,
) -> bool:
    """Whether the budget is still the one that was learned for. Else nothing is stored: somebody
    has accepted a suggestion meanwhile, which would be open again, and its effect forgotten. The
    next run, which comes for the edit, does it."""
    rows = Suggestion.objects.select_for_update().filter(project_id=project_id, model_key=model_key)
    stored = {(row.upstream, Figure(row.figure)): row for row in rows}
    # Asked behind the lock that who accepts has as well.
    if budget_of(project_id, model_key, model) != budget:
        return False
    for place, one in found.items():
        row = stored.get(place)
        if row is None:
            row = Suggestion(
                project_id=project_id, model_key=model_key, upstream=place[0], figure=place[1].value
            )
        elif row.state == SuggestionState.TRIAL.value:
            continue  # what is tried stays as it is until somebody decides
        elif row.state == SuggestionState.DISMISSED.value and not _is_another(row.changes, one):
            continue
        _open(row, model, one, budget, now)
    for place, row in stored.items():
        if place not in found and row.state == SuggestionState.OPEN.value:
            row.state, row.decided_at = SuggestionState.GONE.value, now
            row.save(update_fields=["state", "decided_at"])
    return True


def _open(
    row: Suggestion, model: str, one: Suggested, budget: EffectiveBudget, now: datetime
) -> None:
    if row._state.adding or row.state != SuggestionState.OPEN.value:
        row.made_at = now
    row.state = SuggestionState.OPEN.value
    row.model = model
    row.changes = dict(one.changes)
    row.today = {field: to_json(getattr(budget, field)) for field in one.changes}
    row.evidence = to_json(asdict(one.evidence))
    row.refreshed_at = now
    row.decided_at, row.decided_by, row.reason, row.effect = None, "", "", None
    row.save()


def _is_another(before: Mapping[str, Any], one: Suggested) -> bool:
    """Whether a suggestion differs from one that was answered by more than it may move."""
    for field, value in one.changes.items():
        old = before.get(field)
        if isinstance(value, int | float) and isinstance(old, int | float) and old and value:
            if not 1 / _ANOTHER <= value / old <= _ANOTHER:
                return True
        elif value != old:
            return True
    return False


def _measure(project_id: int, now: datetime) -> None:
    """What came of edits that were accepted: their model's calls since."""
    accepted = Suggestion.objects.filter(
        project_id=project_id,
        state=SuggestionState.ACCEPTED.value,
        decided_at__gt=now - LOOKS_BACK,
    )
    for row in accepted:
        if row.decided_at is None or not row.effect or row.effect["before"] is None:
            continue
        since, until = after_edit(row.decided_at)
        after = clean_and_all(
            project_id=project_id, model_key=row.model_key, since=since, until=until
        )
        if after is not None:
            effect = {**row.effect, "after": after}
            Suggestion.objects.filter(pk=row.pk).update(effect=effect)
