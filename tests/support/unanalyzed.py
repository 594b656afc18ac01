"""A table of which the database knows nothing: as in the first minute of an installation."""

from __future__ import annotations

from typing import Any

from django.db import connection, models


def forget_statistics(model: type[models.Model]) -> None:
    """As if PostgreSQL had never analyzed the model's table. What it knows of one is else what the
    tests before have left: how many rows there are stays even where they were rolled back."""
    if connection.vendor != "postgresql":
        return
    table: list[Any] = [model._meta.db_table]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = %s::regclass", table)
        cursor.execute(
            "DELETE FROM pg_statistic_ext_data WHERE stxoid IN"
            " (SELECT oid FROM pg_statistic_ext WHERE stxrelid = %s::regclass)",
            table,
        )
        cursor.execute(
            "UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE oid = %s::regclass"
            " OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass)",
            table * 2,
        )
