"""When calls failed first and last, for several failures in one statement.

Planned once for all of them: a subquery for each, over each month with its indexes, took
PostgreSQL longer to plan than all else on the first page together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db import connection

from helmdash.records.models import Call
from helmdash.records.querysets import moment
from helmdash.records.replica import connection_for


class FailedIn(NamedTuple):
    """The calls that failed for a cause, of a model as it was spelt, from `since` to before
    `until`."""

    cause: str
    model: str
    since: datetime
    until: datetime


_SOURCE: Final = {
    "postgresql": "unnest(%s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])"
    " WITH ORDINALITY AS w(cause, model, since, until, place)",
    "sqlite": "(SELECT value ->> 0 AS cause, value ->> 1 AS model, value ->> 2 AS since,"
    " value ->> 3 AS until, key + 1 AS place FROM json_each(%s)) AS w",
}
# The index of causes is of calls that have one: said as it says it.
_NEXT: Final = (
    f"SELECT c.started_at FROM {Call._meta.db_table} c WHERE c.project_id = %s"
    " AND c.cause = w.cause AND NOT c.cause = '' AND c.model = w.model"
    " AND c.started_at >= w.since AND c.started_at < w.until"
    # The bounds of all, as constants: other months are not even planned for.
    " AND c.started_at >= %s AND c.started_at < %s ORDER BY c.started_at {0}, c.id {0} LIMIT 1"
)


def failed_times(
    *, project_id: int, first: Sequence[FailedIn], latest: Sequence[FailedIn]
) -> tuple[list[datetime | None], list[datetime | None]]:
    """When the first call of each of `first` started, and the last of each of `latest`; None where
    none is there. Both must not be empty. One statement: for each a step into the index of causes.
    """
    values: list[Any] = []
    pieces: list[str] = []
    for number, (asked, way) in enumerate(((first, "ASC"), (latest, "DESC"))):
        pieces.append(
            f"SELECT {number}, w.place, ({_NEXT.format(way)}) FROM {_SOURCE[connection.vendor]}"
        )
        since, until = min(each.since for each in asked), max(each.until for each in asked)
        values += [project_id, _told(since), _told(until), *_columns(asked)]
    found: tuple[list[datetime | None], ...] = ([None] * len(first), [None] * len(latest))
    with connection_for(Call).cursor() as cursor:
        cursor.execute(" UNION ALL ".join(pieces), values)
        for number, place, at in cursor.fetchall():
            found[number][place - 1] = None if at is None else moment(at)
    return found[0], found[1]


def _columns(asked: Sequence[FailedIn]) -> list[Any]:
    rows = [(*each[:2], _told(each.since), _told(each.until)) for each in asked]
    if connection.vendor == "postgresql":
        return [list(column) for column in zip(*rows, strict=True)]
    return [json.dumps(rows)]


def _told(at: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(at)
