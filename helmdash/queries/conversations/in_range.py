"""The first conversations of a list by time that has an end: those that began before it.

The list is in the order of the newest calls, and those that go on after the end are its newest.
Among all that had a call since then they are few: whoever began before and is no long-lived one
(records.long_lived) had its newest call within a day of the end. So one part of the list is read by
the index of the long-lived, the other by that of all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.lists.by_value import first_rows, first_values
from helmdash.records.bounds import bounded
from helmdash.records.long_lived import IsLongLived
from helmdash.records.models import Conversation


def first_of(
    rows: QuerySet[Conversation],
    filters: ConversationFilters,
    most: int,
    *,
    is_ahead: bool,
    columns: Collection[str] = (),
) -> list[Any]:
    """The first `most` of rows in the order of their newest calls. is_ahead: the oldest first.
    columns: the values of these; none: the rows. Queries as of `found_first`; twice as many where
    the filters have an end."""
    border = filters.near_until
    if border is None:
        return found_first(rows, filters, most, columns=columns)
    near = bounded(rows, "latest_at", lt=border)
    far = bounded(rows, "latest_at", gte=border).filter(IsLongLived("latest_at", "started_at"))
    found: list[Any] = []
    for part in (near, far) if is_ahead else (far, near):
        if len(found) < most:
            found += found_first(part, filters, most - len(found), columns=columns)
    return found


def found_first(
    rows: QuerySet[Conversation],
    filters: ConversationFilters,
    most: int,
    *,
    columns: Collection[str] = (),
) -> list[Any]:
    """The first `most` of rows; columns: as of `first_of`. One query; those of by_value where they
    are of several values. With a part of an id thousands are tried for them: in the index of times
    alone, which has the names, and only what fits is read."""
    if filters.q:
        fits = Conversation.objects.filter(id__in=rows.values("id")[:most])
        found = fits.order_by(*rows.query.order_by)
        return list(found.values_list(*columns) if columns else found)
    if columns:
        return first_values(rows, "latest_at", most, columns)
    return first_rows(rows, "latest_at", most)
