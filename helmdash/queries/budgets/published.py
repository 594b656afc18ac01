"""What the list of published figures gives the models of a project, or would give them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.learned_windows import LimitSource
from helmdash.core.budgets.prices import has_prices
from helmdash.queries.budgets import budgets
from helmdash.queries.budgets.budget_use import USE_DAYS, ModelUse

# As many as one looks through before saying yes.
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledModel:
    """A model of the last USE_DAYS days. window: its limit by the list, in tokens; None: it has
    another one. prices: its budget with the list; None: it has prices without it."""

    model: str
    calls: int
    window: int | None
    prices: EffectiveBudget | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFill:
    """What the list fills in. found: of how many models, with windows of so many and prices of so
    many; models: the first of them, most calls first. source, as_of: of the list."""

    is_used: bool
    found: int
    models: tuple[FilledModel, ...]
    windows: int
    prices: int
    source: str
    as_of: str
    days: int = USE_DAYS

    @property
    def more(self) -> int:
        """How many models there are besides those that are told."""
        return self.found - len(self.models)


def published_fill(*, project_id: int, uses: Sequence[ModelUse]) -> PublishedFill:
    """What the list fills in for these models, or would if it was used. One query."""
    table = budgets.table(project_id=project_id)
    row = table.row_of("")
    without = table.with_row(replace(row, uses_published_list=False))
    beside = table.with_row(replace(row, uses_published_list=True))
    found = tuple(_filled(uses, without, beside))
    known = budgets.published_list()
    return PublishedFill(
        is_used=row.uses_published_list,
        found=len(found),
        models=found[:_SHOWN],
        windows=sum(each.window is not None for each in found),
        prices=sum(each.prices is not None for each in found),
        source=known.source,
        as_of=known.as_of,
    )


def _filled(
    uses: Sequence[ModelUse], without: BudgetTable, beside: BudgetTable
) -> Iterator[FilledModel]:
    for use in uses:
        plain, full = (each.lookup(use.model, key=use.model_key) for each in (without, beside))
        window = full.limit_tokens if full.limit_source is LimitSource.PUBLISHED else None
        prices = full if has_prices(full) and not has_prices(plain) else None
        if window is not None or prices is not None:
            yield FilledModel(model=use.model, calls=use.calls, window=window, prices=prices)
