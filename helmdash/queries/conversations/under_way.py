"""What goes on now: conversations that fill up, and those that have stopped in the middle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import F

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.projection import (
    NEWEST_PROMPTS,
    Projection,
    Prompt,
    lines_ahead,
    project,
)
from helmdash.core.calls.finish import FinishReason
from helmdash.queries.budgets import budgets
from helmdash.queries.calls.calls import health_of
from helmdash.queries.conversations.care import RECENT
from helmdash.records.models import Call, Conversation
from helmdash.records.querysets import in_partitions

# An agent that works asks again within minutes, and nothing is projected for one that does not.
ACTIVE: Final = timedelta(minutes=30)
# The next move is the agent's: it was asked to call tools. Longer than most tools run.
STALLED_AFTER: Final = timedelta(minutes=10)
# Far off, a slope says nothing.
_GENERATIONS_AHEAD: Final = 20
# The newest conversations that are looked at; each costs its newest calls.
_LOOKED_AT: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A conversation that fills up (projection: to its next line, to_critical: to that line,
    whichever is the next), or that has stopped (None): its newest reply asked for tools, and no
    call came since."""

    id: str
    model: str
    health: Health
    projection: Projection | None
    to_critical: Projection | None
    latest_at: datetime


def under_way(*, project_id: int, now: datetime, limit: int) -> tuple[UnderWay, ...]:
    """Those that fill up, the nearest to a line first; then those that stand still, the newest
    first. By today's budgets, which the calls that come are judged by. Of the newest conversations
    of the last day. Three queries."""
    rows = {
        row.pk: row
        for row in Conversation.objects.filter(
            project_id=project_id, latest_at__gte=now - RECENT
        ).order_by("-latest_at", "-id")[:_LOOKED_AT]
    }
    prompts_of = Call.objects.filter(
        project_id=project_id,
        conversation_id__in=rows,
        generation__gt=F("conversation__generation") - NEWEST_PROMPTS,
        round_number=F("conversation__round_number"),
    )
    if rows:
        first = min(row.started_at for row in rows.values())
        latest = max(row.latest_at for row in rows.values())
        prompts_of = in_partitions(prompts_of, first, latest)
    newest = prompts_of.order_by("conversation_id", "generation").values_list(
        "conversation_id",
        "generation",
        "started_at",
        "prompt_tokens",
        "level_reason",
        "finish_reason",
    )
    prompts: defaultdict[int, list[Prompt]] = defaultdict(list)
    endings: dict[int, str] = {}
    for pk, generation, at, tokens, reason, ending in newest if rows else ():
        endings[pk] = ending
        is_trusted = reason != HealthReason.SUSPECTED_CUT.value
        if generation is not None and tokens is not None and is_trusted:
            prompts[pk].append(Prompt(generation, at, tokens))
    filling: list[UnderWay] = []
    stalled: list[UnderWay] = []
    table: BudgetTable | None = None
    for pk, row in rows.items():
        if now - row.latest_at < ACTIVE:
            table = table or budgets.table(project_id=project_id)
            today = table.for_conversation(row.name).lookup(
                row.model, key=row.model_key, client_window=row.client_window
            )
            lines = lines_ahead(health_of(row), today)
            ahead = project(prompts[pk], lines)
            if ahead is not None and ahead.generations <= _GENERATIONS_AHEAD:
                to_critical = project(prompts[pk], lines, to=Level.CRITICAL)
                filling.append(_view(row, ahead, to_critical))
                continue
        is_asked = endings.get(pk) == FinishReason.TOOL_CALLS.value
        if is_asked and now - row.latest_at >= STALLED_AFTER:
            stalled.append(_view(row, None, None))
    filling.sort(key=_nearness)
    return tuple([*filling, *stalled][:limit])


def _nearness(item: UnderWay) -> int:
    return item.projection.generations if item.projection else _GENERATIONS_AHEAD


def _view(
    row: Conversation, projection: Projection | None, to_critical: Projection | None
) -> UnderWay:
    return UnderWay(
        id=row.name,
        model=row.model,
        health=health_of(row),
        projection=projection,
        to_critical=to_critical,
        latest_at=row.latest_at,
    )
