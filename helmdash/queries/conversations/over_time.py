"""The conversations of a list at their newest call, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Min, QuerySet

from helmdash.core.budgets.levels import LEVELS
from helmdash.queries.calls.list_series import MOST_LISTED, Countable, Newest, newest
from helmdash.queries.calls.series import Bar
from helmdash.queries.conversations.filters import (
    ConversationFilters,
    found_by_index,
    looked_through,
)
from helmdash.queries.conversations.in_range import found_first
from helmdash.queries.lists.reach import Reach
from helmdash.records.models import Conversation
from helmdash.records.replica import connection_for

# Conversations that PostgreSQL counts by an index alone: five milliseconds. Where it looks at the
# rows as well, MOST_LISTED take as long. SQLite has neither bars nor arrays to count by, and its
# rows are read in this process anyhow.
MOST_COUNTED: Final = 20_000
_LEVEL_OF: Final = {row.severity: level.value for level, row in LEVELS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Rows that PostgreSQL counts (queries.calls.list_series.Countable)."""

    rows: QuerySet[Conversation]
    read_from: datetime | None
    most: int

    @property
    def has_none(self) -> bool:
        return False

    def first_at(self) -> datetime | None:
        oldest = self.rows.order_by("latest_at", "id").values_list("latest_at", flat=True)
        return oldest.first()

    def count(self, bars: Sequence[Bar]) -> tuple[tuple[Bar, ...], Counter[str | None]]:
        told: list[Counter[str | None]] = [Counter() for _ in bars]
        for number, severity, rows in _count(self.rows, bars) if bars else ():
            told[number][_LEVEL_OF[severity]] += rows
        exact = tuple(
            replace(bar, calls=words.total(), parts={word: n for word, n in words.items() if word})
            for bar, words in zip(bars, told, strict=True)
        )
        return exact, sum(told, Counter())


def newest_moments(*, project_id: int, filters: ConversationFilters) -> Countable:
    """When the newest conversations that fit had their newest call, and their level: MOST_COUNTED
    at most, MOST_LISTED where their rows are looked at. One query, two more with a model, one more
    and those of TermTable.conditions with terms; on PostgreSQL two at most to count them."""
    if filters.is_tried or filters.has_several or connection.vendor != "postgresql":
        return _read(project_id, filters)
    most = MOST_COUNTED if _has_index(filters) else MOST_LISTED
    # Whose newest call was before a moment, its first one was as well, which no index says.
    rows = _until(found_by_index(project_id, filters), filters)
    places = rows.order_by("-latest_at", "-id").values_list("latest_at", "id")
    found = list(places[most - 1 : most + 1])
    if len(found) < 2:
        return _Counted(rows=rows, read_from=None, most=most)
    rows = Reach(field="latest_at", last=found[0]).within(rows)
    return _Counted(rows=rows, read_from=found[1][0], most=most)


def _has_index(filters: ConversationFilters) -> bool:
    """Whether an index has all that is asked for, and the level beside it: those of the level, also
    of conversations of more than one call."""
    others = (filters.model, filters.client, filters.trial, filters.terms or None)
    return all(each is None for each in others)


def first_moment(*, project_id: int) -> datetime | None:
    """The newest call of the conversation that is quiet for longest. One query."""
    rows = Conversation.objects.filter(project_id=project_id)
    at: datetime | None = rows.aggregate(at=Min("latest_at"))["at"]
    return at


def _read(project_id: int, filters: ConversationFilters) -> Newest:
    fitting, looked = looked_through(project_id, filters)
    ordered = _until(fitting, filters).order_by("-latest_at", "-id")
    columns = ("latest_at", "severity")
    found = found_first(ordered, filters, MOST_LISTED + 1, columns=columns)
    told = [(at, _LEVEL_OF[severity]) for at, severity in found]
    return newest(told, read_from=looked.last[0] if looked else None)


def _until(rows: QuerySet[Conversation], filters: ConversationFilters) -> QuerySet[Conversation]:
    return rows if filters.until is None else rows.filter(latest_at__lt=filters.until)


def _count(rows: QuerySet[Conversation], bars: Sequence[Bar]) -> Sequence[tuple[int, int, int]]:
    """The number of a bar, a severity, and how many of it are in the bar. One query."""
    inside = rows.filter(latest_at__gte=bars[0].since, latest_at__lt=bars[-1].until)
    try:
        counted, values = inside.order_by().values("latest_at", "severity").query.sql_with_params()
    except EmptyResultSet:  # no model is spelt so, say
        return ()
    statement = (
        "SELECT width_bucket(c.latest_at, %s::timestamptz[]) - 1, c.severity, COUNT(*)"
        f" FROM ({counted}) AS c GROUP BY 1, 2"
    )
    with connection_for(Conversation).cursor() as cursor:
        cursor.execute(statement, [[bar.since for bar in bars], *values])
        found: Sequence[tuple[int, int, int]] = cursor.fetchall()
        return found
