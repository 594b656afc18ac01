"""Budget tables by what is stored: tests that store the same rows have their table built once.

Most tests begin with the shipped rows, and nothing may be remembered from one test to the next by
the number of edits, as the product does: a rolled back database gives the same numbers to other
rows. To read 140 rows and to build their table takes 6 ms; to compare what they hold, 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Q

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.queries.budgets import budget_origins, budgets
from helmdash.records.models import Budget, BudgetAlias, LearnedWindow
from helmdash.records.models.budgets import SHIPPED_REASON

# Of tests that store rows of their own; each is some hundred kB.
_MOST = 32

_known: dict[Any, BudgetTable] = {}


def build_tables_once() -> None:
    """Have the tables of this process looked up by their rows from now on."""
    budgets._read_table = _remembering(budgets._read_table)  # type: ignore[assignment]


def _remembering(read: Callable[[int | None], BudgetTable]) -> Callable[[int | None], BudgetTable]:
    def known_or_read(project_id: int | None) -> BudgetTable:
        if connection.force_debug_cursor or connection.execute_wrappers:
            # A test counts statements: those of the product.
            return read(project_id)
        stored = _stored(project_id)
        table = _known.pop(stored, None)
        if table is None:
            table = read(project_id)
        while len(_known) >= _MOST:
            del _known[next(iter(_known))]
        _known[stored] = table
        return table

    return known_or_read


def _stored(project_id: int | None) -> object:
    """All that a table is made of, as the database gives it."""
    with connection.cursor() as cursor:
        found = [
            cursor.execute(statement, [project_id] * statement.count("%s")).fetchall()
            for statement in _statements()
        ]
    # What operators edited is told by earlier rows as well.
    by = None
    if found.pop():
        rows = list(Budget.objects.filter(Q(project=None) | Q(project=project_id)))
        by = tuple(sorted(budget_origins.windows_by(rows).items()))
    return project_id, by, *map(tuple, found)


@cache
def _statements() -> tuple[str, ...]:
    budget, alias, window, edit = (
        model._meta.db_table for model in (Budget, BudgetAlias, LearnedWindow, Budget.history.model)
    )
    columns = ", ".join(field.name for field in STORED_FIELDS)
    return (
        (
            f"SELECT id, project_id, {columns}, window_copied_from FROM {budget}"
            " WHERE project_id IS NULL OR project_id = %s ORDER BY id"
        ),
        f"SELECT prefix, target, evidence FROM {alias} ORDER BY id",
        f"SELECT * FROM {window} ORDER BY id",
        (
            f"SELECT id FROM {edit} WHERE history_change_reason IS NULL"
            f" OR history_change_reason <> '{SHIPPED_REASON}' LIMIT 1"
        ),
    )
