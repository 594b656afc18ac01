"""The first conversations of a list by time that has an end: those that began before it.

The list is in the order of the newest calls, and those that go on after the end are its newest.
Among all that had a call since then they are few: whoever began before and is no long-lived one
(records.long_lived) had its newest call within a day of the end. So one part of the list is read by
the index of the long-lived, the other by that of all.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.records.long_lived import IsLongLived
from helmdash.records.models import Conversation


def first_of(
    rows: QuerySet[Any], filters: ConversationFilters, most: int, *, is_ahead: bool
) -> list[Any]:
    """The first `most` of whole rows in the order of their newest calls. is_ahead: the oldest
    first. One query; two where the filters have an end."""
    border = filters.near_until
    if border is None:
        return list(found_first(rows, filters, most))
    near = rows.filter(latest_at__lt=border)
    far = rows.filter(IsLongLived("latest_at", "started_at"), latest_at__gte=border)
    found: list[Any] = []
    for part in (near, far) if is_ahead else (far, near):
        if len(found) < most:
            found += found_first(part, filters, most - len(found))
    return found


def found_first(rows: QuerySet[Any], filters: ConversationFilters, most: int) -> QuerySet[Any]:
    """The first `most` of rows. With a part of an id thousands are tried for them: in the index of
    times alone, which has the names, and only what fits is read."""
    if not filters.q:
        return rows[:most]
    fits = rows.values("id")[:most]
    return Conversation.objects.filter(id__in=fits).order_by(*rows.query.order_by)
