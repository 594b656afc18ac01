"""What budget rows are used for: the lines that hold by each, its models, and their prompts.

All from the rollups of models: a table of rows costs as many queries as one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from helmdash.core.budgets.budget_rules import budget_problems
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import BudgetSpec, EffectiveBudget
from helmdash.core.budgets.levels import Level
from helmdash.core.rollups import buckets
from helmdash.core.rollups.figures import CALLS, Distribution, Marginal, distribution, under
from helmdash.core.rollups.spread import Shift, Spread, levels_of, shifts_of, spread_of
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.queries.budgets.budgets import BudgetRow

# Long enough for models that are used once in a while, short enough to be about today's prompts.
USE_DAYS: Final = 30
# How the row without a key is called.
_FALLBACK: Final = "fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """A model as it was spelt most often, its calls, and its prompts by bucket of tokens."""

    model: str
    model_key: str
    calls: int
    prompts: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowUse:
    """A row with what it does.

    lines: what holds for a model of its very key; None: it governs nothing, since it is disabled
    or `replaced` by the project's row of the same key. models: those it governs, most calls first.
    levels: how their prompts would be judged by its lines. p95: of the prompts, in tokens; None:
    none was told.
    """

    row: BudgetRow
    lines: EffectiveBudget | None
    is_replaced: bool
    models: tuple[ModelUse, ...]
    calls: int
    spread: Spread | None
    levels: Mapping[Level, int]
    p50: int | None
    p95: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """A page of the rows that a project sees, those with the most calls first, then in table order.

    total: how many rows it sees; found: how many of them were asked for, by `key`. models: all that
    were used, most calls first; None: calls of before an upgrade are still to be added up, and
    nothing is said of models.
    """

    rows: tuple[RowUse, ...]
    total: int
    found: int
    page: int
    pages: int
    models: tuple[ModelUse, ...] | None
    key: str
    days: int = USE_DAYS

    @property
    def is_counted(self) -> bool:
        """Whether its models are told."""
        return self.models is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEffect:
    """What an edit of a row would do to the prompts of its models.

    before, after: what holds for a model of its very key. problems: (field, sentence); with any,
    nothing is judged.
    """

    before: EffectiveBudget
    after: EffectiveBudget
    problems: tuple[tuple[str, str], ...]
    prompts: int
    shifts: tuple[Shift, ...]
    spread: Spread | None


def model_uses(*, project_id: int, now: datetime) -> tuple[ModelUse, ...] | None:
    """The models of the last USE_DAYS days, most calls first. None: calls of before an upgrade are
    still to be added up. Three queries."""
    since = (now - timedelta(days=USE_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    found = rollups.figures(
        project_id=project_id,
        marginal=Marginal.MODEL,
        since=since,
        until=None,
        distributions=(Distribution.PROMPT_TOKENS,),
    )
    if found is None:
        return None
    prompts: dict[str, Counter[int]] = {}
    spellings: dict[str, Counter[str]] = {}
    calls: Counter[str] = Counter()
    for (key, *_), counts in found.totals().items():
        prompts.setdefault(key, Counter()).update(distribution(counts, Distribution.PROMPT_TOKENS))
        spellings.setdefault(key, Counter()).update(under(counts, "s"))
        calls[key] += counts[CALLS]
    return tuple(
        ModelUse(
            model=max(spellings[key].items(), key=lambda each: (each[1], each[0]), default=(key,))[
                0
            ],
            model_key=key,
            calls=count,
            prompts=prompts[key],
        )
        for key, count in sorted(calls.items(), key=lambda each: (-each[1], each[0]))
    )


def table_use(
    *, project_id: int, now: datetime, limit: int, key: str = "", page: int = 1
) -> TableUse:
    """The rows that a project sees whose key has `key` in it, in any letters, with what they do.

    page: which `limit` of them; past the last it is the last. Eleven queries at most.
    """
    keys = budgets.keys(project_id=project_id)
    table = budgets.table(project_id=project_id)
    uses = model_uses(project_id=project_id, now=now)
    by_row = _by_row(table, uses or ())
    found = [number for number, told in keys.items() if _has(told, key)]
    found.sort(key=lambda number: -_calls(by_row.get(number, ())))
    pages = max(1, -(-len(found) // limit))
    page = min(max(page, 1), pages)
    numbers = found[(page - 1) * limit : page * limit]
    rows = {row.id: row for row in budgets.some(project_id=project_id, numbers=numbers)}
    return TableUse(
        rows=tuple(
            _use(rows[number], table, by_row.get(number, ()))
            for number in numbers
            if number in rows
        ),
        total=len(keys),
        found=len(found),
        page=page,
        pages=pages,
        models=uses,
        key=key,
    )


def effects_of(
    *, project_id: int, now: datetime, rows: Sequence[tuple[BudgetRow, BudgetSpec]]
) -> tuple[RowEffect, ...]:
    """What edits of rows would do, each by itself: the row as it stands, and as it would be stored
    (its number None: for the project alone, beside the other). Five queries at most."""
    table = budgets.table(project_id=project_id)
    by_row = _by_row(table, model_uses(project_id=project_id, now=now) or ())
    return tuple(_effect(table, row, spec, by_row.get(row.id, ())) for row, spec in rows)


def _by_row(table: BudgetTable, uses: Iterable[ModelUse]) -> dict[int, list[ModelUse]]:
    found: dict[int, list[ModelUse]] = {}
    for use in uses:
        budget_id = _lookup(table, use).budget_id
        if budget_id is not None:
            found.setdefault(budget_id, []).append(use)
    return found


def _has(key: str, part: str) -> bool:
    return part.casefold() in (key or _FALLBACK).casefold()


def _calls(models: Iterable[ModelUse]) -> int:
    return sum(each.calls for each in models)


def _lookup(table: BudgetTable, use: ModelUse) -> EffectiveBudget:
    return table.lookup(use.model, key=use.model_key)


def _use(row: BudgetRow, table: BudgetTable, models: Sequence[ModelUse]) -> RowUse:
    holds = table.lookup(row.budget.key)
    governs = row.budget.enabled and holds.budget_id == row.id
    prompts = _together(models)
    has_spread = governs and bool(prompts)
    return RowUse(
        row=row,
        lines=holds if governs else None,
        is_replaced=row.budget.enabled and not governs,
        models=tuple(models),
        calls=_calls(models),
        spread=spread_of(prompts, holds) if has_spread else None,
        levels=levels_of(prompts, holds) if has_spread else {},
        p50=buckets.percentile(prompts, 50),
        p95=buckets.percentile(prompts, 95),
    )


def _effect(
    table: BudgetTable, row: BudgetRow, spec: BudgetSpec, models: Sequence[ModelUse]
) -> RowEffect:
    # Of a row as it is nothing is stored.
    edited = table if spec.stored() == row.budget.stored() else table.with_row(spec)
    before, after = table.lookup(row.budget.key), edited.lookup(row.budget.key)
    problems = budget_problems(spec)
    shifts: Counter[tuple[Level, Level]] = Counter()
    for each in models if not problems else ():
        shifts.update(shifts_of(each.prompts, _lookup(table, each), _lookup(edited, each)))
    prompts = _together(models)
    return RowEffect(
        before=before,
        after=after,
        problems=problems,
        prompts=sum(prompts.values()),
        shifts=tuple(
            Shift(before=was, after=now, prompts=count)
            for (was, now), count in sorted(shifts.items())
        ),
        spread=spread_of(prompts, after) if prompts and not problems else None,
    )


def _together(models: Sequence[ModelUse]) -> Counter[int]:
    found: Counter[int] = Counter()
    for each in models:
        found.update(each.prompts)
    return found
