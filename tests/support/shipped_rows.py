"""The shipped budgets in a test's database, for a tenth of what loading them takes.

`load_budgets` makes 140 rows and the history of each: 80 ms, more than most tests take. It does so
once in a process; what it stored is then put back as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import Model

from helmdash.operations.budgets import shipped
from helmdash.records.models import Budget, BudgetAlias

_ROWS: tuple[type[Model], ...] = (Budget, BudgetAlias)
_HISTORY: tuple[type[Model], ...] = (Budget.history.model, BudgetAlias.history.model)

_kept: dict[type[Model], tuple[str, Sequence[Any] | None]] = {}
"""The statement that puts a table's rows back, with its values; empty before the first load."""
_history_rows = 0


def load_shipped_budgets() -> None:
    """As `load_budgets` does where none of the shipped rows was deleted."""
    stored = Budget.history.count()
    if stored and stored == _history_rows:
        return  # Loaded, and nobody has changed a row since.
    if _kept and not stored and not Budget.objects.exists():
        _put_back(*_ROWS, *_HISTORY)
        return
    shipped.load_budgets()
    if not stored:
        _keep()


def load_without_history() -> None:
    """The shipped rows alone, into empty tables."""
    if not _kept:
        shipped.load_budgets()
        _keep()
        for model in _HISTORY:
            model._default_manager.all().delete()
        return
    _put_back(*_ROWS)


def _keep() -> None:
    global _history_rows
    _history_rows = Budget.history.count()
    for model in (*_ROWS, *_HISTORY):
        columns = ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields)
        table = f'"{model._meta.db_table}"'
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {table}")
            rows = cursor.fetchall()
            places = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
            statement = f"INSERT INTO {table} ({columns}) VALUES {places}"
            values = tuple(chain.from_iterable(rows))
            if connection.vendor == "postgresql":
                # psycopg looks for thousands of places anew each time: longer than all the rest.
                _kept[model] = (cursor.mogrify(statement, values), None)
            else:
                _kept[model] = (statement, values)


def _put_back(*models: type[Model]) -> None:
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(*_kept[model])
