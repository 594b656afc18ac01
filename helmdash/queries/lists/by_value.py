"""The first rows, in the order of time, of those that have one of several values.

A database that is asked for them at once walks along the rows by their time and tries each, until
it has a page full: where the values are rare, or of long ago (a model that nobody asks any more),
through millions. So each value is asked for by itself, which its index finds in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.lookups import In

from helmdash.queries.lists.indexed_columns import LEFT_OUT, MOST_VALUES, asks_by_index, values_of
from helmdash.records.bounds import bounded
from helmdash.records.statements.direct import is_postgres

# Where a row is deleted or changed between the two statements: a page that is short ends a list.
_TRIES: Final = 3
_M = TypeVar("_M", bound=Model)


def by_value(rows: QuerySet[_M]) -> tuple[QuerySet[_M], ...]:
    """The rows of each value by themselves, where they are narrowed to some values of a column;
    else the rows as they are. Of several such columns the one with the fewest values."""
    conditions: Sequence[Any] = rows.query.where.children
    asked = [each for each in conditions if _has_index(each, rows.model)]
    if not asked:
        return (rows,)
    split = min(asked, key=lambda each: len(values_of(each)))
    return tuple(_of_value(rows, split, value) for value in values_of(split))


def first_rows(
    rows: QuerySet[_M], field: str, most: int, *, ways: Sequence[QuerySet[_M]] | None = None
) -> list[_M]:
    """The first `most` rows, which are in the order of `field` and id. One query; where they are of
    several values one for each, and one for the rows. ways: what finds them instead, together."""
    parts = by_value(rows) if ways is None else ways
    if len(parts) == 1:
        return list(parts[0][:most])
    found: list[_M] = []
    for _ in range(_TRIES):
        keys = _first(rows, parts, field, most, ())
        if not keys:
            return []
        told = {row.pk: row for row in _at(rows, field, keys)}
        found = [told[pk] for _, pk in keys if pk in told]
        if len(found) == len(keys):
            break
    return found


def first_values(
    rows: QuerySet[Any],
    field: str,
    most: int,
    columns: Collection[str],
    *,
    ways: Sequence[QuerySet[Any]] | None = None,
) -> list[tuple[Any, ...]]:
    """As `first_rows`, of some columns alone: a query for each value."""
    parts = by_value(rows) if ways is None else ways
    if len(parts) == 1:
        return list(parts[0].values_list(*columns)[:most])
    return [row[2:] for row in _first(rows, parts, field, most, columns)]


def _at(rows: QuerySet[_M], field: str, keys: Sequence[tuple[Any, ...]]) -> QuerySet[_M]:
    """The rows of these times and ids, in no order. SQLite is told the ids alone: it would look for
    few among all that lie in the same stretch of time, or have one of the values."""
    found = rows.order_by()
    if is_postgres():
        times = [at for at, _ in keys]
        found = bounded(found, field, gte=min(times), lte=max(times))
    else:
        found.query.where.children = []
    return found.filter(id__in=[pk for _, pk in keys])


def _first(
    rows: QuerySet[Any],
    parts: Sequence[QuerySet[Any]],
    field: str,
    most: int,
    columns: Collection[str],
) -> list[tuple[Any, ...]]:
    """Time, id and columns of the first of rows, out of their parts."""
    told = (row for part in parts for row in part.values_list(field, "id", *columns)[:most])
    # More than one may find a row.
    found = {row[:2]: row for row in told}
    is_down = str(rows.query.order_by[0]).startswith("-")
    return sorted(found.values(), key=itemgetter(0, 1), reverse=is_down)[:most]


def _has_index(condition: object, model: type[Model]) -> bool:
    """Whether it asks for a few values of a column of which each is found in the order of time."""
    if not isinstance(condition, In) or not asks_by_index(condition, model):
        return False
    return 1 < len(values_of(condition)) <= MOST_VALUES


def _of_value(rows: QuerySet[_M], split: In[Any], value: object) -> QuerySet[_M]:
    name = split.lhs.target.name
    part = rows.filter(**{name: value})
    if value != LEFT_OUT.get(name, value):
        part = part.exclude(**{name: LEFT_OUT[name]})
    conditions: Sequence[Any] = part.query.where.children
    part.query.where.children = [each for each in conditions if each is not split]
    return part
