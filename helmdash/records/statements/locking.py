"""Reading rows that are about to be changed, locked, without the ORM.

Wording such a query takes Django several times as long as a database takes to answer it, and
recording asks it for every group of calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import orjson
from django.db import connection, models

from helmdash.records.models import Project
from helmdash.records.statements.direct import Question, ask_prepared, is_postgres


def lock_project(project_id: int) -> None:
    """Let nobody else count rows of the project by this function, and add to them, until this
    transaction ends: without it two who meet on PostgreSQL both find room for one more.

    Others go on recording into the project: their rows refer to its number, which stays.
    """
    rows = Project.objects.select_for_update(no_key=True).filter(pk=project_id)
    list(rows.values_list("pk"))


def lock_rows(
    model: type[models.Model],
    names: tuple[str, ...],
    *,
    project_id: int,
    column: str,
    values: Collection[str] | Collection[int],
) -> list[Sequence[Any]]:
    """The named attributes of a project's rows whose `column` is one of the values.

    Locked in the order of that column, so that two transactions cannot wait for each other; on
    SQLite the transaction itself is the lock. Values that no row has are left out. One query.
    """
    asked = lock_question(model, names, project_id=project_id, column=column, values=values)
    _, conversions = _search(model, names, column, len(values) == 1)
    return [_converted(row, conversions) for row in ask_prepared(*asked)]


def lock_question(
    model: type[models.Model],
    names: tuple[str, ...],
    *,
    project_id: int,
    column: str,
    values: Collection[str] | Collection[int],
) -> Question:
    """What `lock_rows` asks."""
    is_one = len(values) == 1
    statement, _ = _search(model, names, column, is_one)
    wanted = sorted(set(values))  # type: ignore[type-var]
    given: Any = wanted[0] if is_one else wanted if is_postgres() else json.dumps(wanted)
    return Question(statement, [given, project_id])


def _converted(
    row: Sequence[Any], conversions: Sequence[tuple[int, Callable[[Any], Any]]]
) -> list[Any]:
    values = list(row)
    for place, convert in conversions:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values


@cache
def _search(
    model: type[models.Model], names: tuple[str, ...], column: str, is_one: bool
) -> tuple[str, tuple[tuple[int, Callable[[Any], Any]], ...]]:
    """The statement, for one value or the same for any number of them, and what converts which
    place of a row."""
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    quote = connection.ops.quote_name
    table, key = quote(model._meta.db_table), f"t.{quote(column)}"
    chosen = ", ".join(f"t.{quote(str(by_name[name].column))}" for name in names)
    # An id finds its row: IS TRUE keeps a planner from one of the indexes that begin with the
    # project, of which a new database seems to hold few rows.
    own = "(t.project_id = %s) IS TRUE" if column == "id" else "t.project_id = %s"
    if is_one:
        locked = " FOR UPDATE" if is_postgres() else ""
        statement = f"SELECT {chosen} FROM {table} t WHERE {key} = %s AND {own}{locked}"
    elif is_postgres():
        # Each is looked up by itself (OFFSET keeps a planner from another way), in the order given:
        # by `= ANY` all of a project's rows are read where the planner knows of few.
        kind = by_name[column].db_type(connection).partition("(")[0]  # type: ignore[union-attr]
        wanted = f"(SELECT unnest(%s::{kind}[]) AS wanted) w"
        each = f"SELECT * FROM {table} t WHERE {key} = w.wanted AND {own} OFFSET 0 FOR UPDATE"
        statement = f"SELECT {chosen} FROM {wanted} CROSS JOIN LATERAL ({each}) t"
    else:
        # CROSS JOIN is SQLite's word for this order: from the few values to their rows.
        found = f"FROM json_each(%s) w CROSS JOIN {table} t WHERE t.project_id = %s"
        statement = f"SELECT {chosen} {found} AND {key} = w.value ORDER BY {key}"
    conversions = ((place, _converter(by_name[name])) for place, name in enumerate(names))
    return statement, tuple((place, how) for place, how in conversions if how is not None)


def _converter(field: models.Field[Any, Any]) -> Callable[[Any], Any] | None:
    """From what the driver gives; None where that is it already."""
    if isinstance(field, models.JSONField):
        return _json
    if not is_postgres() and isinstance(field, models.DateTimeField):
        return _time
    return None


def _json(text: str) -> Any:
    # Django keeps psycopg from reading it.
    return orjson.loads(text)


def _time(naive: datetime) -> datetime:
    """SQLite keeps times in UTC without saying so."""
    return naive.replace(tzinfo=UTC)
