"""Which values a column of the calls table holds, for the filters of the pages, and which models a
spelling means among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.model_names import bare_name, split_window
from helmdash.core.rollups.figures import Marginal
from helmdash.core.text.query_terms import term_text
from helmdash.queries import rollups
from helmdash.queries.budgets import budgets
from helmdash.records.models import PlanRecord
from helmdash.records.querysets import MOST_VALUES, Column, distinct_values


def values(*, project_id: int, column: Column) -> tuple[str, ...]:
    """The first distinct values of a column, as many as a list offers; the empty one left out. Two
    queries at most.

    On PostgreSQL from rollups where these have the column: to walk along the calls means to plan
    for every month, which takes longer than the walk. They also have values of calls that are
    deleted.
    """
    marginal = _MARGINALS.get(column) if connection.vendor == "postgresql" else None
    found = None if marginal is None else rollups.first_words(project_id, marginal)
    return distinct_values(project_id, column) if found is None else found[:MOST_VALUES]


_MARGINALS: Final = {
    "model_key": Marginal.MODEL,
    "client_name": Marginal.CLIENT,
    "purpose": Marginal.PURPOSE,
}


def model_keys(*, project_id: int, model: str) -> tuple[str, ...]:
    """The keys of the recorded models that somebody may mean by this spelling; at least one.

    The key itself, and for a name without its provider those of every provider: a call keeps the
    name it was asked with, and that has to find it again. Two queries.
    """
    known = distinct_values(project_id, "model_key", most=None)
    return meant_keys(model, rules=budgets.table(project_id=project_id), known=by_bare_name(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """model: as it is spelt; model_key: what it is one model by; is_shared: that spelling means
    others of the project's models as well (several upstreams serve one by the same name)."""

    model: str
    model_key: str
    is_shared: bool

    @property
    def name(self) -> str:
        """What it is told apart by: its spelling, or its key where others are spelt so, too."""
        return self.model_key if self.is_shared else self.model

    def asked(self, query: str = "") -> dict[str, str]:
        """Filters of the list of calls that has just this model's, of these those of a query."""
        if self.is_shared:
            return {"query": f"{term_text('key', self.model_key)} {query}".strip()}
        return {"model": self.model, **({"query": query} if query else {})}


def by_bare_name(keys: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Model keys by what stands behind their providers, in the order given."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        found[bare_name(key)].append(key)
    return found


def meant_keys(
    model: str, *, rules: BudgetTable, known: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """What a spelling may mean among the `known` keys (by_bare_name); its own key comes first."""
    key = rules.key_of(model)
    asked = split_window(model.strip()).model.lower()
    if "/" in asked and key in known.get(bare_name(key), ()):
        return (key,)
    others = [each for name in {asked: 0, key: 0} for each in known.get(name, ()) if each != key]
    return (key, *others)


def planned_models(*, project_id: int, model: str) -> tuple[str, ...]:
    """The models of plans that somebody may mean by this spelling, as they are spelt there.

    Three queries.
    """
    keys = model_keys(project_id=project_id, model=model)
    rules = budgets.table(project_id=project_id)
    spelt = distinct_values(project_id, "model", of=PlanRecord, most=None)
    return (model, *(each for each in spelt if rules.key_of(each) in keys))
