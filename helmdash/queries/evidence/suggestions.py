"""The inbox of suggested edits: each with today's value, the suggested one, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from django.db.models import Prefetch, QuerySet

from helmdash.answers import BLANK_IS_NULL, Doc, answer
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.suggested import (
    UNDECIDED,
    Counted,
    SuggestionState,
    ToldNumber,
    Value,
)
from helmdash.queries.evidence import trials
from helmdash.queries.evidence.trials import TrialView
from helmdash.queries.lists.paging import Page, decode_number_cursor, encode_cursor
from helmdash.records.models import Suggestion, Trial


@answer("SuggestedChange")
@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedChange:
    """One column of the budget. today: as it was when the suggestion was made."""

    field: str
    today: Value | None
    suggested: Value


@answer("SuggestionEffect")
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The model's calls of the 30 days before an edit was accepted, and since."""

    before: Counted
    after: Counted


@answer("Suggestion")
@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionView:
    """An edit of a model's budget that recorded calls suggest."""

    id: int
    model: str
    model_key: str
    upstream: Annotated[str, BLANK_IS_NULL, Doc("Null: the calls of all of them.")]
    figure: Figure
    state: Annotated[
        SuggestionState, Doc("gone: later calls no longer show it, or the budget was edited.")
    ]
    changes: tuple[SuggestedChange, ...]
    why: str
    method: Annotated[str, Doc("Its name and version: docs/evidence.md.")]
    calls: Annotated[int, Doc("How many calls it was learned from.")]
    since: Annotated[datetime | None, Doc("Of these calls: GET /calls takes it, too.")]
    until: datetime | None
    query: Annotated[
        str,
        BLANK_IS_NULL,
        Doc("The q of GET /calls that lists them, with since and until. Null: an older one's."),
    ]
    low: Annotated[
        float | None,
        Doc("The 95 % interval of what was measured: of a fall, or of a share. Null: none."),
    ]
    high: float | None
    touched: Annotated[
        Counted | None, Doc("Recorded calls that the edit would have concerned. Null: not counted.")
    ]
    touched_query: Annotated[str, BLANK_IS_NULL, Doc("As query, of the calls concerned.")]
    numbers: Annotated[
        tuple[ToldNumber, ...], Doc("Of why, in its order: how many calls, and their query.")
    ]
    made_at: datetime
    refreshed_at: datetime
    decided_at: datetime | None
    decided_by: Annotated[str, BLANK_IS_NULL]
    reason: Annotated[str, BLANK_IS_NULL]
    trial: Annotated[TrialView | None, Doc("The newest. Null: it was not tried.")]
    budget_id: Annotated[int | None, Doc("The row that was edited. Null: not accepted.")]
    edit_id: Annotated[
        int | None, Doc("The number of that edit in the history. Null: not accepted, or long ago.")
    ]
    effect: Annotated[Effect | None, Doc("Null: not accepted, or nothing is measured yet.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionList(Page[SuggestionView]):
    """A page of suggestions, newest first."""

    items: tuple[SuggestionView, ...]


def page(
    *,
    project_id: int,
    state: SuggestionState | None = None,
    model: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> SuggestionList:
    """Suggestions of a project, newest first. Two queries.

    state, model (its key, or as it is spelt): None: any. Raises BadCursor.
    """
    rows = _with_trials(project_id).order_by("-id")
    if state is not None:
        rows = rows.filter(state=state.value)
    if model:
        rows = rows.filter(model_key=model.lower()) | rows.filter(model=model)
    if cursor:
        rows = rows.filter(id__lt=decode_number_cursor(cursor))
    found = list(rows[: limit + 1])
    return SuggestionList(
        items=tuple(map(view_of, found[:limit])),
        next=encode_cursor(found[limit - 1].pk) if len(found) > limit else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """What waits for somebody, and what was decided last. more: so many wait besides."""

    waiting: tuple[SuggestionView, ...]
    more: int
    decided: tuple[SuggestionView, ...]


# A page's worth; who has more of them sees the next ones as these are answered.
_MOST_WAITING: Final = 20
_MOST_DECIDED: Final = 10
_DECIDED: Final = (SuggestionState.ACCEPTED.value, SuggestionState.DISMISSED.value)


def inbox(*, project_id: int) -> Inbox:
    """The newest suggestions that wait, those on trial first, and the last that were accepted or
    dismissed. Two queries, and one for trials of each."""
    rows = _with_trials(project_id)
    undecided = [each.value for each in UNDECIDED]
    waiting = rows.filter(state__in=undecided).order_by("-state", "-id")
    decided = rows.filter(state__in=_DECIDED).order_by("-decided_at", "-id")[:_MOST_DECIDED]
    found = list(waiting)
    return Inbox(
        waiting=tuple(map(view_of, found[:_MOST_WAITING])),
        more=max(len(found) - _MOST_WAITING, 0),
        decided=tuple(map(view_of, decided)),
    )


def decided_between(
    *, project_id: int, since: datetime, until: datetime, most: int
) -> tuple[tuple[SuggestionView, ...], int]:
    """The newest `most` that were accepted or dismissed from `since` to before `until`, and how
    many more there are. Three queries."""
    rows = _with_trials(project_id).filter(
        state__in=_DECIDED, decided_at__gte=since, decided_at__lt=until
    )
    found = list(rows.order_by("-decided_at", "-id")[:most])
    more = rows.count() - len(found) if len(found) == most else 0
    return tuple(map(view_of, found)), more


def find(*, project_id: int, suggestion_id: int) -> SuggestionView | None:
    """One of the project's; None where it has none with this number."""
    row = _with_trials(project_id).filter(pk=suggestion_id).first()
    return view_of(row) if row else None


def _with_trials(project_id: int) -> QuerySet[Suggestion]:
    newest_first = Prefetch("trials", queryset=Trial.objects.order_by("-id"))
    return Suggestion.objects.filter(project_id=project_id).prefetch_related(newest_first)


def _trial(row: Suggestion) -> TrialView | None:
    """The newest trial since the suggestion was made: one that came back is another."""
    tried = [each for each in row.trials.all() if each.started_at >= row.made_at]
    return trials.view_of(max(tried, key=lambda each: each.pk)) if tried else None


def view_of(row: Suggestion) -> SuggestionView:
    """A stored row as it is shown."""
    told: Mapping[str, Any] = row.evidence
    return SuggestionView(
        id=row.pk,
        model=row.model,
        model_key=row.model_key,
        upstream=row.upstream,
        figure=Figure(row.figure),
        state=SuggestionState(row.state),
        changes=tuple(
            SuggestedChange(field=field, today=row.today.get(field), suggested=value)
            for field, value in row.changes.items()
        ),
        why=told["why"],
        method=told["method"],
        calls=told["calls"],
        since=_moment(told["since"]),
        until=_moment(told["until"]),
        query=told.get("query", ""),
        low=told["low"],
        high=told["high"],
        touched=_counted(told["touched"]),
        touched_query=told.get("touched_query", ""),
        numbers=tuple(ToldNumber(**each) for each in told.get("numbers", ())),
        made_at=row.made_at,
        refreshed_at=row.refreshed_at,
        decided_at=row.decided_at,
        decided_by=row.decided_by,
        reason=row.reason,
        trial=_trial(row),
        budget_id=row.effect["budget_id"] if row.effect else None,
        edit_id=row.effect.get("edit") if row.effect else None,
        effect=_effect(row.effect),
    )


def _effect(told: Mapping[str, Any] | None) -> Effect | None:
    if told is None or told["before"] is None or "after" not in told:
        return None
    return Effect(before=Counted(**told["before"]), after=Counted(**told["after"]))


def _counted(told: Mapping[str, Any] | None) -> Counted | None:
    return Counted(**told) if told else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
