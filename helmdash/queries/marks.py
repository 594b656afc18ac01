"""What happened besides calls, for the axes of time: edits of budgets, clears, and what clients
told of turns without a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db.models import Q

from helmdash.core.agents.claude_hooks import ClientEventKind
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.records.models import Budget, ClientEvent, Round
from helmdash.records.models.budgets import SHIPPED_REASON

# More would hide the bars that they stand above; the newest say most.
MOST_MARKS: Final = 40
_TOLD: Final = {
    ClientEventKind.REFUSAL.value: "its client refused to go on, without a request",
    ClientEventKind.FAILURE.value: "its client ended a turn, as a request failed",
}
_EDITS: Final = {"+": "added", "~": "edited", "-": "deleted"}


class MarkKind(StrEnum):
    """What a mark stands for."""

    BUDGET = "budget"
    CLEAR = "clear"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing that happened, in words. subject: the key of the budget, or the conversation."""

    at: datetime
    kind: MarkKind
    text: str
    subject: str = ""


def marks(*, project_id: int, since: datetime, until: datetime) -> tuple[Mark, ...]:
    """The newest edits of budgets that hold for a project, and the newest clears in it, from
    `since` to before `until`; oldest first. Two queries, at most MOST_MARKS of each."""
    found = [*_edits(project_id, since, until), *_clears(project_id, since, until)]
    return tuple(sorted(found, key=lambda mark: mark.at))


def edits_of(
    *, project_id: int, budget: EffectiveBudget, since: datetime, until: datetime
) -> tuple[Mark, ...]:
    """The newest edits of the rows that a model's budget came from, from `since` to before `until`,
    oldest first. One query."""
    rows = Q(key=budget.key) | Q(id=budget.budget_id)
    return tuple(reversed(_edits(project_id, since, until, rows)))


def told_by_client(
    *, project_id: int, conversation: str, since: datetime, until: datetime
) -> tuple[Mark, ...]:
    """What the client of a conversation told of turns that sent no request, or failed: the newest
    from `since` to before `until`, oldest first. One query."""
    rows = (
        ClientEvent.objects.filter(
            project_id=project_id,
            conversation__project_id=project_id,
            conversation__name=conversation,
            kind__in=_TOLD,
            at__gte=since,
            at__lt=until,
        )
        .order_by("-at", "-id")
        .values_list("at", "kind", "detail")[:MOST_MARKS]
    )
    return tuple(
        Mark(at=at, kind=MarkKind.CLIENT, text=": ".join(filter(None, (_TOLD[kind], detail))))
        for at, kind, detail in reversed(rows)
    )


def _edits(project_id: int, since: datetime, until: datetime, rows: Q | None = None) -> list[Mark]:
    found = (
        Budget.history.filter(
            Q(project_id=project_id) | Q(project_id=None),
            *([] if rows is None else [rows]),
            history_date__gte=since,
            history_date__lt=until,
        )
        # What comes with HelmDash is nobody's edit.
        .exclude(history_change_reason=SHIPPED_REASON)
        .order_by("-history_date")
        .values_list(
            "history_date",
            "key",
            "history_type",
            "history_user__username",
            "history_change_reason",
        )[:MOST_MARKS]
    )
    return [
        Mark(
            at=at,
            kind=MarkKind.BUDGET,
            text=f"budget {key or 'fallback'} {_EDITS[kind]}{_by(user, said)}",
            subject=key,
        )
        for at, key, kind, user, said in found
    ]


def _by(user: str | None, said: str | None) -> str:
    """Who edited it: a person, else what the history says, which names the key or the shell."""
    if user:
        return f" by {user}"
    return f" ({said})" if said else ""


def _clears(project_id: int, since: datetime, until: datetime) -> list[Mark]:
    rows = (
        Round.objects.filter(
            project_id=project_id, opened_by="clear", started_at__gte=since, started_at__lt=until
        )
        .order_by("-started_at")
        .values_list("started_at", "conversation__name")[:MOST_MARKS]
    )
    return [
        Mark(at=at, kind=MarkKind.CLEAR, text=f"clear of {name}", subject=name) for at, name in rows
    ]
