"""Several rows as one parameter of a statement of PostgreSQL: a text of JSON.

The statement stays the same for any number of rows, and the driver binds two values. Arrays, one
for each column, would be quoted in Python: a seventh of all that recording a batch took.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson
from django.db import connection, models


@cache
def row_source(model: type[models.Model], names: tuple[str, ...]) -> str:
    """`(SELECT ...) v` with typed columns, of what `row_as_json` gives."""
    return f"(SELECT * FROM json_to_record(%s::json) AS u({_named(model, names)})) v"


@cache
def rows_source(model: type[models.Model], names: tuple[str, ...]) -> str:
    """`(SELECT ... LIMIT %s) v` with typed columns, of what `rows_as_json` gives.

    The limit, which is the number of rows, is all that tells a planner how few they are: it
    takes any JSON for a hundred.
    """
    named = _named(model, names)
    return f"(SELECT * FROM json_to_recordset(%s::json) AS u({named}) LIMIT %s) v"


def row_as_json(model: type[models.Model], names: tuple[str, ...], values: Sequence[Any]) -> str:
    """A converted row as one text, what `row_source` takes."""
    return orjson.dumps(_told(model, names, [values])[0]).decode()


def rows_as_json(
    model: type[models.Model], names: tuple[str, ...], values: Iterable[Sequence[Any]]
) -> tuple[str, int]:
    """Converted rows as one text, a list of objects by column name, and how many they are: what
    `rows_source` takes."""
    told = _told(model, names, values)
    return orjson.dumps(told).decode(), len(told)


def _told(
    model: type[models.Model], names: tuple[str, ...], values: Iterable[Sequence[Any]]
) -> list[dict[str, Any]]:
    """Rows by column name, as they are dumped."""
    columns, bodies = _json_columns(model, names)
    told = [dict(zip(columns, row, strict=True)) for row in values]
    for row in told if bodies else ():
        for column in bodies:
            if row[column] is not None:
                row[column] = orjson.Fragment(row[column])  # JSON already
    return told


def _named(model: type[models.Model], names: tuple[str, ...]) -> str:
    """The columns with their types, as a function that reads JSON is told them."""
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in names]
    quote = connection.ops.quote_name
    return ", ".join(f"{quote(str(f.column))} {_json_type(f)}" for f in fields)


@cache
def _json_columns(
    model: type[models.Model], names: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All columns, and those of them that hold JSON."""
    by_name = {field.attname: field for field in model._meta.concrete_fields}
    fields = [by_name[name] for name in names]
    bodies = [str(field.column) for field in fields if isinstance(field, models.JSONField)]
    return tuple(str(field.column) for field in fields), tuple(bodies)


def _json_type(field: models.Field[Any, Any]) -> str:
    # Text without a length: a cast to varchar(n) would cut a value that is too long in silence.
    if isinstance(field, models.CharField | models.TextField):
        return "text"
    return str(field.rel_db_type(connection))
