"""What an edit of a budget would have changed among the newest recorded calls and fits.

Nothing is stored and nothing is recorded anew: two tables, before and after, answer for the same
calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from django.db.models import QuerySet

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.health import assess
from helmdash.records.admin.budgets.tables import Tables, read_tables
from helmdash.records.models import Budget, Call, Fit

# Calls of governed models that are judged, and calls that are looked through to find them.
_JUDGED = 1_000
_LOOKED_THROUGH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelShift:
    """How many calls would show another level."""

    before: str
    after: str
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPreview:
    """Counts over the newest calls and fits of the models that the row governs, or would."""

    calls: int
    shifts: tuple[LevelShift, ...]
    over_before: int
    over_after: int
    other_variant: int
    fits: int
    trimmed_before: int
    trimmed_after: int

    @property
    def changed_level(self) -> int:
        """How many of the recorded calls would show another level."""
        return sum(shift.calls for shift in self.shifts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    before: EffectiveBudget
    after: EffectiveBudget


def preview(row: Budget) -> BudgetPreview | None:
    """Judge the newest calls and fits by the stored rows and by them with `row` as it is now.

    None when the table would have no fallback. Four queries.
    """
    before = read_tables()
    edited = row.to_core()
    pairs = _Pairs(before, before.with_row(edited), edited.budget_id)
    calls = list(pairs.governed(_newest(Call.objects.all(), row), "prompt_tokens"))
    fits = list(pairs.governed(_newest(Fit.objects.all(), row), "before_bytes"))
    shifts: Counter[tuple[str, str]] = Counter()
    for pair, prompt_tokens in calls:
        levels = assess(prompt_tokens, pair.before).level, assess(prompt_tokens, pair.after).level
        if levels[0] is not levels[1]:
            shifts[(levels[0].value, levels[1].value)] += 1
    return BudgetPreview(
        calls=len(calls),
        shifts=tuple(
            LevelShift(before=b, after=a, calls=n) for (b, a), n in sorted(shifts.items())
        ),
        over_before=sum(_is_over(prompt, pair.before) for pair, prompt in calls),
        over_after=sum(_is_over(prompt, pair.after) for pair, prompt in calls),
        other_variant=sum(
            pair.before.prompt_variant is not pair.after.prompt_variant for pair, _ in calls
        ),
        fits=len(fits),
        trimmed_before=sum(_is_trimmed(size, pair.before) for pair, size in fits),
        trimmed_after=sum(_is_trimmed(size, pair.after) for pair, size in fits),
    )


class _Pairs:
    """The effective budgets of a model, before and after, looked up once for each model."""

    def __init__(self, before: Tables, after: Tables, budget_id: int | None) -> None:
        self._budget_id = budget_id
        self._tables = cache(lambda p: (before.of_project(p), after.of_project(p)))
        self._pair = cache(self._find)

    def governed(
        self, rows: QuerySet[Call] | QuerySet[Fit], figure: str
    ) -> Iterator[tuple[_Pair, int | None]]:
        found = 0
        for project_id, model, value in rows.values_list("project_id", "model", figure):
            pair = self._pair(project_id, model)
            if pair is not None:
                yield pair, value
                found += 1
            if found >= _JUDGED:
                return

    def _find(self, project_id: int, model: str) -> _Pair | None:
        tables: tuple[BudgetTable | None, BudgetTable | None] = self._tables(project_id)
        if tables[0] is None or tables[1] is None:
            return None
        pair = _Pair(before=tables[0].lookup(model), after=tables[1].lookup(model))
        rows = {pair.before.budget_id, pair.after.budget_id}
        return pair if self._budget_id in rows else None


def _newest(rows: QuerySet[Call] | QuerySet[Fit], row: Budget) -> QuerySet[Call] | QuerySet[Fit]:
    if row.project_id is not None:
        rows = rows.filter(project_id=row.project_id)
    return rows.order_by("-id")[:_LOOKED_THROUGH]


def _is_over(prompt_tokens: int | None, budget: EffectiveBudget) -> bool:
    return prompt_tokens is not None and prompt_tokens > budget.input_tokens


def _is_trimmed(catalog_bytes: int | None, budget: EffectiveBudget) -> bool:
    room = budget.estimator.bytes_within(budget.most_prompt_tokens)
    cap = min(budget.max_catalog_bytes or room, room)
    return catalog_bytes is not None and catalog_bytes > cap
