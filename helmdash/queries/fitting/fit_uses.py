"""What a stored fit was for: its calls, its plan, the edit of the budget that ruled, lost words.

A call names its fit and no index finds it by that; it is looked for where it must be, among the
calls that started soon after the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from helmdash.answers import Doc, JsonName, Stored, answer
from helmdash.core.catalog.trim import Trim
from helmdash.queries.calls.calls import CallView
from helmdash.queries.calls.calls import view as call_view
from helmdash.queries.evidence.net_value import of_calls
from helmdash.queries.evidence.shortened import Shortened
from helmdash.queries.fitting import catalog as catalogs
from helmdash.queries.fitting import fitting
from helmdash.queries.fitting.fitting import FitView
from helmdash.records.models import Budget, Call, CatalogRevision, PlanAttempt

# A catalog is fitted to be sent at once: what is sent later is fitted anew.
WINDOW: Final = timedelta(hours=1)
# A caller's clock may be behind ours.
_SLACK: Final = timedelta(minutes=1)
# So many calls are looked through for their fit in some milliseconds, however many there are.
MOST_CALLS: Final = 5_000
# Tries of a plan follow each other, and the last of them may come so long after it began.
_PLAN: Final = timedelta(minutes=30)
_MOST_SHOWN: Final = 20
# Of an entry that went: its words as far as somebody reads them in a table.
_MOST_CHARS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetEdit:
    """The newest edit of a row of budgets at some moment; by: who made it, or why; None: unknown.
    budget_id, history_id: its row, and the edit among that row's. project_id None: a row of all
    projects."""

    budget_id: int
    history_id: int
    project_id: int | None
    by: str | None
    at: datetime


@answer("RecordedFit")
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFit:
    """A stored fit with its Trim, and what it came to for each call that was sent its result."""

    fit_id: str
    model: str
    catalog_name: str | None
    caller: str | None
    created_at: datetime
    trim: Annotated[Mapping[str, object], JsonName("compaction"), Stored(Trim)]
    calls: Annotated[
        tuple[Shortened, ...],
        Doc("Of the hour after it, oldest first; none where nothing was cut."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitUses:
    """What leads on from a fit.

    calls: that name it, of the hour after it. values: the net value of its Trim for each of these,
    where something was cut. plans: made with it. edit: what made the budget what
    it was then; None: no row ruled, or it tells of none. words: what each entry that went says, by
    its id, as far as its catalog is still kept.
    """

    calls: tuple[CallView, ...]
    values: tuple[Shortened, ...]
    plans: tuple[str, ...]
    edit: BudgetEdit | None
    words: Mapping[str, str]


def uses(*, project_id: int, fit: FitView) -> FitUses:
    """Where a fit came from and went to. Twelve queries at most."""
    calls = _calls(project_id, fit)
    return FitUses(
        calls=calls,
        values=_values(project_id, fit, calls),
        plans=_plans(project_id, fit),
        edit=_edit(fit),
        words=_words(project_id, fit),
    )


def recorded_fit(*, project_id: int, fit_id: str) -> RecordedFit | None:
    """A fit with what its Trim came to; None: the project has none of this id. Nine queries at
    most."""
    fit = fitting.find(project_id=project_id, fit_id=fit_id)
    if fit is None:
        return None
    return RecordedFit(
        fit_id=fit.id,
        model=fit.model,
        catalog_name=fit.catalog_name,
        caller=fit.caller,
        created_at=fit.created_at,
        trim=fit.trim,
        calls=_values(project_id, fit, _calls(project_id, fit)),
    )


def _values(project_id: int, fit: FitView, calls: tuple[CallView, ...]) -> tuple[Shortened, ...]:
    if fit.after_bytes >= fit.before_bytes or not calls:
        return ()
    return of_calls(project_id=project_id, call_ids=[call.id for call in calls])


def _calls(project_id: int, fit: FitView) -> tuple[CallView, ...]:
    since = fit.created_at - _SLACK
    near = Call.objects.filter(
        project_id=project_id, started_at__gte=since, started_at__lt=fit.created_at + WINDOW
    ).order_by("started_at", "id")
    last = near.values_list("started_at", flat=True)[MOST_CALLS : MOST_CALLS + 1].first()
    if last is not None:
        near = near.filter(started_at__lt=last)
    rows = near.filter(fit_name=fit.id).select_related("conversation")
    return tuple(call_view(row) for row in rows[:_MOST_SHOWN])


def _plans(project_id: int, fit: FitView) -> tuple[str, ...]:
    names = PlanAttempt.objects.filter(
        plan__project_id=project_id,
        plan__started_at__gte=fit.created_at - _PLAN,
        plan__started_at__lte=fit.created_at + _SLACK,
        fit_name=fit.id,
    ).values_list("plan__name", flat=True)
    return tuple(names.order_by("plan__name").distinct()[:_MOST_SHOWN])


def _edit(fit: FitView) -> BudgetEdit | None:
    budget_id = fit.budget.get("budget_id")
    if not isinstance(budget_id, int):
        return None
    row = (
        Budget.history.filter(id=budget_id, history_date__lte=fit.created_at)
        .select_related("history_user")
        .order_by("-history_id")
        .first()
    )
    if row is None:
        return None
    return BudgetEdit(
        budget_id=budget_id,
        history_id=row.history_id,
        project_id=row.project_id,
        by=str(row.history_user or row.history_change_reason or "") or None,
        at=row.history_date,
    )


def _words(project_id: int, fit: FitView) -> Mapping[str, str]:
    gone = fit.removed_ids
    if not gone or not fit.catalog_name:
        return {}
    revisions = CatalogRevision.objects.filter(
        project_id=project_id, name=fit.catalog_name, digest=fit.catalog_digest
    )
    row = revisions.defer("body").order_by("-number").first()
    if row is None:
        return {}
    entries = catalogs.prepared(revision=catalogs.info(row)).catalog.entries
    return {
        each.id: each.description[:_MOST_CHARS]
        for each in entries
        if each.id in gone and each.description
    }
