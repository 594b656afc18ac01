"""The budgets as they rule in each project: for the list's "models seen" and for the preview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from helmdash.core.budgets.budget_table import BudgetTable, MissingFallback
from helmdash.core.budgets.budgets import Alias, BudgetSpec
from helmdash.records.models import Budget, BudgetAlias, Project
from helmdash.records.querysets import models_seen

# The admin lists the models seen in these last days that a row governs.
SEEN_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """One budget table for each project, from the same rows."""

    rows: tuple[BudgetSpec, ...]
    aliases: tuple[Alias, ...]

    def of_project(self, project_id: int) -> BudgetTable | None:
        """The global rows and the project's own; None while there is no fallback."""
        own = {None, str(project_id)}
        try:
            return BudgetTable([r for r in self.rows if r.project in own], self.aliases)
        except MissingFallback:
            return None

    def with_row(self, row: BudgetSpec) -> Tables:
        """The same with one row put in the place of its former self, or added."""
        kept = [r for r in self.rows if r.budget_id is None or r.budget_id != row.budget_id]
        return Tables(rows=(*kept, row), aliases=self.aliases)


def read_tables() -> Tables:
    """All rows and aliases as they are stored. Two queries."""
    return Tables(
        rows=tuple(row.to_core() for row in Budget.objects.order_by("id")),
        aliases=tuple(row.to_core() for row in BudgetAlias.objects.order_by("id")),
    )


def models_by_budget(*, now: datetime) -> Mapping[int, Sequence[str]]:
    """Models that were called lately, under the budget row that governs them. Four queries."""
    tables = read_tables()
    projects = list(Project.objects.order_by("id").values_list("id", flat=True))
    seen = models_seen(projects, now - timedelta(days=SEEN_DAYS))
    ruling = {project: tables.of_project(project) for project in {s.project_id for s in seen}}
    found: dict[int, set[str]] = {}
    for one in seen:
        table = ruling[one.project_id]
        budget_id = table.lookup(one.model).budget_id if table else None
        if budget_id is not None:
            found.setdefault(budget_id, set()).add(one.model)
    return {budget_id: sorted(models) for budget_id, models in found.items()}


def same_scope(rows: Iterable[Budget], budget: Budget) -> tuple[str, ...]:
    """Keys of the enabled rows that meet `budget` in some table, its own left out."""
    projects = {None, budget.project_id}
    return tuple(
        row.key
        for row in rows
        if row.enabled and row.key and row.pk != budget.pk and row.project_id in projects
    )
