"""Reads that need more than the ORM says, for queries/ and for the admin alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar

from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.utils.dateparse import parse_datetime

from helmdash.records.models.conversations import Call
from helmdash.records.replica import connection_for
from helmdash.records.statements import partitions

Column = Literal["model", "model_key", "client_name", "pack", "purpose", "entry", "caller"]
_M = TypeVar("_M", bound=Model)
# More values than this in a drop-down help nobody; a filter takes any that is recorded.
MOST_VALUES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInProject:
    """The key of a model that some call of a project named; when the newest of them started."""

    project_id: int
    model: str
    latest_at: datetime


def distinct_values(
    project_id: int, column: Column, *, of: type[Model] = Call, most: int | None = MOST_VALUES
) -> tuple[str, ...]:
    """Distinct values of a column of calls (or `of`), in order; the empty one left out. One query.

    most: the first so many; None: all. Whoever looks for one of them needs all.

    A loose index scan: from each value to the next one along the index that serves the filter, so
    a million calls with thirty models cost thirty steps, of some microseconds each.
    """
    limit = "" if most is None else f" LIMIT {most}"
    table = connection.ops.quote_name(of._meta.db_table)
    with connection_for(of).cursor() as cursor:
        cursor.execute(
            # The next value by order: PostgreSQL plans a MIN in two ways for each month, and for a
            # first value apart as much again, together 19 ms where this takes 2.
            f"WITH RECURSIVE step(value) AS (SELECT CAST('' AS text)"
            f" UNION ALL SELECT (SELECT c.{column} FROM {table} c WHERE c.project_id = %s"
            f" AND c.{column} > step.value ORDER BY c.{column} LIMIT 1)"
            f" FROM step WHERE step.value IS NOT NULL)"
            f" SELECT value FROM step WHERE value IS NOT NULL AND value <> ''{limit}",
            [project_id],
        )
        return tuple(row[0] for row in cursor.fetchall())


def models_seen(project_ids: Sequence[int], since: datetime) -> tuple[SeenInProject, ...]:
    """Models that were called since a moment, in each of some projects. One query.

    The same walk along (project, model_key, started_at) for all projects at once; the newest
    call of each pair is the last entry of its stretch of that index. Months before are not asked.
    """
    if not project_ids:
        return ()
    table = connection.ops.quote_name(Call._meta.db_table)
    starts = " UNION ALL ".join(["SELECT CAST(%s AS BIGINT) AS id"] * len(project_ids))
    month = partitions.month_of(since)
    lately = ""
    if connection.vendor == "postgresql" and month is not None:
        # The whole month, so that no entry of the index is passed over for its time.
        lately = f" AND c.started_at >= '{month.isoformat()}'"
    with connection_for(Call).cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE step(project_id, value) AS ("
            f" SELECT p.id, (SELECT MIN(c.model_key) FROM {table} c"
            f" WHERE c.project_id = p.id{lately}) FROM ({starts}) p"
            f" UNION ALL SELECT step.project_id, (SELECT MIN(c.model_key) FROM {table} c"
            f" WHERE c.project_id = step.project_id AND c.model_key > step.value{lately})"
            f" FROM step WHERE step.value IS NOT NULL),"
            f" seen AS (SELECT project_id, value, (SELECT MAX(c.started_at) FROM {table} c"
            f" WHERE c.project_id = step.project_id AND c.model_key = step.value{lately})"
            f" AS latest_at"
            f" FROM step WHERE value IS NOT NULL)"
            f" SELECT project_id, value, latest_at FROM seen WHERE latest_at >= %s"
            f" ORDER BY project_id, value",
            [*project_ids, connection.ops.adapt_datetimefield_value(since)],
        )
        return tuple(
            SeenInProject(project_id=row[0], model=row[1], latest_at=moment(row[2]))
            for row in cursor.fetchall()
        )


def starts_with(field: str, text: str) -> Q:
    """Rows whose field begins with the text, in a way the index serves on both databases."""
    if connection.vendor == "postgresql":
        return Q(**{f"{field}__startswith": text})
    # SQLite's LIKE ignores case and so its index; the range says the same and uses it.
    return Q(**{f"{field}__gte": text, f"{field}__lt": text + "\U0010ffff"})


def contains(field: str, text: str) -> Q:
    """Rows whose field has the text in it, in any letter case, on both databases alike."""
    if connection.vendor == "postgresql" or text.isascii():
        return Q(**{f"{field}__icontains": text})
    # SQLite's LIKE folds ASCII alone; Django's function for patterns all that Unicode has.
    return Q(**{f"{field}__iregex": re.escape(text)})


def in_partitions(rows: QuerySet[_M], first: datetime, last: datetime) -> QuerySet[_M]:
    """Rows of calls that are known to have started from one moment to another.

    Says it where calls lie in partitions, so that only those are asked; SQLite would think that
    the times find the rows, and walk through them all.
    """
    if connection.vendor != "postgresql":
        return rows
    return rows.filter(started_at__gte=first, started_at__lte=last)


class Spanning(Protocol):
    """A conversation, and from when to when its calls started."""

    @property
    def id(self) -> int: ...
    @property
    def project_id(self) -> int: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def latest_at(self) -> datetime: ...


def calls_of(conversation: Spanning) -> QuerySet[Call]:
    """The calls of a conversation, in the partitions that it reaches over."""
    rows = Call.objects.filter(project_id=conversation.project_id, conversation_id=conversation.id)
    return in_partitions(rows, conversation.started_at, conversation.latest_at)


def moment(value: datetime | str) -> datetime:
    """A time that raw SQL gave: SQLite tells it as text, or in UTC without saying so."""
    parsed = value if isinstance(value, datetime) else parse_datetime(value)
    if parsed is None:
        raise ValueError(f"not a time: {value!r}")
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
