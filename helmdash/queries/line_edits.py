"""A call or a conversation by today's budget, and by the budget with other lines.

What is recorded keeps the level it was judged by; these are what the same prompt would be called
now, or would be after an edit. Nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetSpec, EffectiveBudget
from helmdash.core.budgets.health import Health, HealthReason, assess
from helmdash.core.budgets.judged import is_operators
from helmdash.core.budgets.learned_windows import TOLD, LimitSource, with_told_window
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.model_names import split_window
from helmdash.queries.budgets import budgets
from helmdash.queries.calls.calls import CallView
from helmdash.queries.conversations.care import NeedsAttention
from helmdash.queries.conversations.conversations import ConversationView
from helmdash.queries.conversations.curve import CurvePoint, curve_of
from helmdash.records.models import Budget, Call, Conversation

# The newest calls of the model on which an edit is tried: read in some milliseconds.
MOST_CALLS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The model whose budget is looked at, by a call or a conversation. health: as it was judged,
    `at` that time."""

    model: str
    model_key: str
    client_window: int | None
    health: Health
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """Another level by today's budget; edited_by, edited_at: its newest edit since the call, None:
    it has none, something else has changed."""

    level: Level
    budget: EffectiveBudget
    edited_by: str | None
    edited_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What the panel edits, in tokens; None: as the default has it, of the window: not known."""

    caution: int | None
    critical: int | None
    window: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEdit:
    """An edit in one project alone. row: as it is, budget_id None: it will be a new one. changes:
    figures by name."""

    row: BudgetSpec
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """So many calls would show another level."""

    before: Level
    after: Level
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """An edit that is tried out.

    row: as it would be stored, for the project alone (budget_id None: a new one). calls: the newest
    calls of the model that told their prompt, MOST_CALLS at most; shifts: those of another level.
    problems: (field, sentence); with any, nothing is judged. published: the window (tokens) by the
    published list where the model would have no limit; None: it would, or the list knows none.
    """

    row: BudgetSpec
    before: EffectiveBudget
    after: EffectiveBudget
    problems: tuple[tuple[str, str], ...]
    calls: int
    shifts: tuple[Shift, ...]
    published: int | None = None


def subject_of_conversation(found: ConversationView) -> Subject:
    """The model of its newest call."""
    return Subject(
        model=found.model,
        model_key=found.model_key,
        client_window=found.client_window,
        health=found.health,
        at=found.latest_at,
    )


def subject_of_call(call: CallView) -> Subject:
    """The model of a call."""
    return Subject(
        model=call.model,
        model_key=call.model_key,
        client_window=call.client_window,
        health=call.health,
        at=call.recorded_at,
    )


def judged_today(subject: Subject, budget: EffectiveBudget) -> Today | None:
    """The level by today's budget, where it is another than the one that is stored. None: it is the
    same, or nothing can be said. A query where it is another."""
    level = _other_level(subject.health, budget)
    if level is None:
        return None
    edit = (
        Budget.history.filter(id=budget.budget_id, history_date__gt=subject.at)
        .select_related("history_user")
        .order_by("-history_id")
        .first()
    )
    return Today(
        level=level,
        budget=budget,
        edited_by=str(edit.history_user or edit.history_change_reason or "") if edit else None,
        edited_at=edit.history_date if edit else None,
    )


def levels_today(
    *, project_id: int, found: Iterable[ConversationView | NeedsAttention]
) -> dict[str, Level]:
    """The level by today's budget, by id, of the conversations where it is another than the one of
    their newest call. One query."""
    table = budgets.table(project_id=project_id)
    levels = {
        each.id: _other_level(
            each.health,
            table.for_conversation(each.id).lookup(
                each.model, key=each.model_key, client_window=each.client_window
            ),
        )
        for each in found
    }
    return {name: level for name, level in levels.items() if level is not None}


def edited_row(*, project_id: int, subject: Subject, lines: Lines) -> BudgetSpec:
    """The row that an edit of the model's lines stores."""
    edit = edit_of_lines(project_id=project_id, subject=subject, lines=lines)
    return replace(edit.row, **edit.changes)


def edit_of_lines(*, project_id: int, subject: Subject, lines: Lines) -> OwnEdit:
    """As it is stored.

    A window that is left as it was told stays the word of whoever told it, unless a line is drawn
    that only fits into that window. Where nothing is moved, that confirms the window.
    """
    moved: dict[str, Any] = {
        "optimal_max_tokens": lines.caution,
        "critical_max_tokens": lines.critical,
    }
    begun = lines_of_row(project_id=project_id, subject=subject)
    if lines != begun and lines.window == begun.window:
        edit = _edit_of(project_id, subject, moved)
        if not budget_problems(replace(edit.row, **edit.changes)):
            return edit
    return _edit_of(project_id, subject, {**moved, "context_length": lines.window})


def _edit_of(project_id: int, subject: Subject, changes: Mapping[str, Any]) -> OwnEdit:
    return own_edit(
        project_id=project_id,
        model=subject.model,
        model_key=subject.model_key,
        changes=changes,
    )


def own_edit(*, project_id: int, model: str, model_key: str, changes: Mapping[str, Any]) -> OwnEdit:
    """Which row an edit for one model in one project is made to: the project's own, or a new one
    beside the row of every project; the fallback's figures get the model's id as their key.

    changes: figures by name. Where others than the row told the window in force, the row is that of
    this model alone, and what they told becomes its window where the figures speak of it
    (core.budgets.learned_windows).
    """
    table = budgets.table(project_id=project_id)
    return own_edit_in(
        table, project_id=project_id, model=model, model_key=model_key, changes=changes
    )


def own_edit_in(
    table: BudgetTable, *, project_id: int, model: str, model_key: str, changes: Mapping[str, Any]
) -> OwnEdit:
    """As `own_edit`, of a table that is at hand. No query."""
    told = _told_window(table.lookup(model, key=model_key))
    key = table.key_to_edit(model) if told is None else split_window(model.strip()).model
    row = table.row_to_edit(key, project=str(project_id))
    return OwnEdit(
        row=row, changes=with_told_window(row.window_by, row.stored(), changes, told=told)
    )


def lines_of_row(*, project_id: int, subject: Subject) -> Lines:
    """The lines that an edit begins with: those of the governing row, and the window in force where
    a server or a refusal told it. (A client's is of its session, and no figure of a row.)"""
    row = budgets.table(project_id=project_id).row_of(subject.model)
    return Lines(
        caution=row.optimal_max_tokens,
        critical=row.critical_max_tokens,
        window=_told_window(_lookup(project_id, subject)) or row.context_length,
    )


def _told_window(budget: EffectiveBudget) -> int | None:
    """The limit in force, where others than the row told it; no operator's row governs then."""
    return budget.limit_tokens if budget.limit_source in TOLD else None


def try_lines(*, project_id: int, subject: Subject, lines: Lines) -> LineEdit:
    """What an edit would change among the newest calls of the model. Two queries."""
    row = edited_row(project_id=project_id, subject=subject, lines=lines)
    table = budgets.table(project_id=project_id)
    before = _lookup(project_id, subject)
    after = table.with_row(row).lookup(
        subject.model, key=subject.model_key, client_window=subject.client_window
    )
    problems = budget_problems(row)
    if problems:
        return LineEdit(row=row, before=before, after=after, problems=problems, calls=0, shifts=())
    prompts = list(
        Call.objects.filter(project_id=project_id, model_key=subject.model_key)
        .order_by("-started_at", "-id")
        .values_list("prompt_tokens", flat=True)[:MOST_CALLS]
    )
    told = [each for each in prompts if each is not None]
    moves = Counter((assess(each, before).level, assess(each, after).level) for each in told)
    return LineEdit(
        row=row,
        before=before,
        after=after,
        problems=(),
        calls=len(told),
        shifts=tuple(
            Shift(before=was, after=now, calls=count)
            for (was, now), count in sorted(moves.items())
            if was is not now
        ),
        published=_published_window(table, subject.model_key, after),
    )


def _published_window(table: BudgetTable, model_key: str, after: EffectiveBudget) -> int | None:
    is_known = after.limit_tokens is not None or after.disproved_by is not None
    if is_known or table.row_of("").uses_published_list:
        return None
    found = budgets.published_list().find(model_key)
    return found.context_length if found else None


def level_by(subject: Subject, budget: EffectiveBudget) -> Level:
    """The level of the subject's prompt by a budget; as it is where its count is not trusted."""
    health = subject.health
    if health.reason is HealthReason.SUSPECTED_CUT:
        return health.level
    return assess(health.prompt_tokens, budget).level


def rejudged(
    points: Sequence[CurvePoint], subject: Subject, budget: EffectiveBudget
) -> list[CurvePoint]:
    """The points of a curve as the budget would have them, as far as they are of its model."""
    return [
        replace(
            point,
            level=assess(point.prompt_tokens, budget).level if point.is_trusted else point.level,
            limit_tokens=budget.limit_tokens,
            optimal_max_tokens=budget.optimal_max_tokens,
            critical_max_tokens=budget.critical_max_tokens,
        )
        if point.model == subject.model
        else point
        for point in points
    ]


def points_of(*, project_id: int, conversation: str | None) -> tuple[CurvePoint, ...]:
    """The curve of a conversation; empty where there is none. Two queries."""
    row = Conversation.objects.filter(project_id=project_id, name=conversation or "").first()
    return curve_of(row) if row else ()


def _lookup(project_id: int, subject: Subject) -> EffectiveBudget:
    return budgets.table(project_id=project_id).lookup(
        subject.model, key=subject.model_key, client_window=subject.client_window
    )


def _other_level(health: Health, budget: EffectiveBudget) -> Level | None:
    if health.prompt_tokens is None or health.reason is HealthReason.SUSPECTED_CUT:
        return None
    is_told = health.limit_source is LimitSource.SERVER is not budget.limit_source
    if is_told and not is_operators(budget):
        return None  # judged by the window of a server, which only the call knew
    level = assess(health.prompt_tokens, budget).level
    return None if level in (health.level, Level.UNKNOWN) else level
