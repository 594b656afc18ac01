"""What a tab asks for all the time: whether anything is new, and how much is critical."""

from __future__ import annotations

from typing import Final

from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.queries.calls.calls import change_mark
from helmdash.records.models import (
    Budget,
    Conversation,
    Guidance,
    PlanRecord,
    Reminder,
    Round,
)

# Beyond this nobody counts, nor does a title have room.
MOST_COUNTED: Final = 99

_WATCHED = (Guidance, Round, Reminder, PlanRecord, Budget.history.model)


def news_mark() -> tuple[int, ...]:
    """The mark of all calls, and the largest primary key of each other table whose new rows change
    a page, whatever project they are of. One query for each of five tables, two for calls.

    Another row that is changed or deleted does not move it: pages look again once a minute.
    """
    newest = (
        model._default_manager.order_by("-pk").values_list("pk", flat=True).first() or 0
        for model in _WATCHED
    )
    return change_mark(), *newest


def critical_count(*, project_id: int) -> int:
    """The conversations whose newest call is critical, MOST_COUNTED at most. One query."""
    severity = LEVELS[Level.CRITICAL].severity
    rows = Conversation.objects.filter(project_id=project_id, severity=severity)
    return rows[:MOST_COUNTED].count()
