"""What vendors publish of their models: windows and prices, for what no budget row knows.

A list that HelmDash ships (`fixtures/published_models.json`, ADR 77). It says least of all: an
advertised window counts where nobody has told another, a price where the row has none; and it is
asked only where the fallback row says so (`uses_published_list`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from helmdash.core.budgets.budgets import BudgetFigures
from helmdash.core.budgets.model_names import FREE_SUFFIX

# A release of a model is named by its day: claude-x-20260101, gpt-x-2026-01-01, claude-x@20260101.
_DAY = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigures:
    """Of one model. context_length in tokens, prices in USD per million tokens before surcharges
    for length; None: not published. Prices are named as budgets name them."""

    context_length: int | None = None
    input_cost_usd_per_mtok: float | None = None
    cached_input_cost_usd_per_mtok: float | None = None
    cache_write_cost_usd_per_mtok: float | None = None
    output_cost_usd_per_mtok: float | None = None


_PRICES: Final = tuple(each.name for each in fields(PublishedFigures) if "cost" in each.name)


def prices_beside(row: BudgetFigures, published: PublishedFigures) -> dict[str, float]:
    """The prices of the list that hold beside a row's, by name: all of them where the row has none
    of input, for a price of cached input alone is of another day; else those that it leaves open.
    (Of cached input, none is written as 0.)"""
    told = {name: price for name in _PRICES if (price := getattr(published, name)) is not None}
    if row.input_cost_usd_per_mtok is None and published.input_cost_usd_per_mtok is not None:
        return {"cached_input_cost_usd_per_mtok": 0.0, **told}
    return {name: price for name, price in told.items() if getattr(row, name) is None}


# A provider's models by name, and by beginnings of names, the longest first.
_Models = tuple[Mapping[str, PublishedFigures], tuple[tuple[str, PublishedFigures], ...]]


class PublishedList:
    """All of them. source: what the list was made of; as_of: the day of its prices."""

    def __init__(
        self,
        *,
        source: str = "",
        as_of: str = "",
        providers: Mapping[str, _Models],
        makers: Iterable[str],
    ) -> None:
        """makers: the providers of models of their own, by whom a bare name is understood."""
        self.source, self.as_of = source, as_of
        self._providers = providers
        self._makers = tuple(makers)

    def find(self, key: str) -> PublishedFigures | None:
        """What is published of a model key (core.budgets.model_names); None: nothing, or of a bare
        name by several makers. What another server calls by a vendor's name has its own window."""
        provider, slash, name = key.partition("/")
        if not slash and ":" in key:
            return None  # with a tag, as Ollama has them: a model of a server of one's own
        if not slash:
            found = [each for maker in self._makers if (each := self._named(maker, key))]
            return found[0] if len(found) == 1 else None
        return self._named(provider, name) if provider in self._providers else None

    def _named(self, provider: str, name: str) -> PublishedFigures | None:
        names, begins = self._providers[provider]
        found = names.get(name) or names.get(_DAY.sub("", name))
        if found is not None or name.endswith(FREE_SUFFIX):
            return found  # a free route has no price of the one that it is called after
        return next((figures for begin, figures in begins if name.startswith(begin)), None)


# Nothing is published.
NO_LIST = PublishedList(providers={}, makers=())


def read_published(text: str) -> PublishedList:
    """The list of the file. Raises ValueError or KeyError where it is none."""
    told = json.loads(text)
    providers: dict[str, _Models] = {}
    for name, section in told["providers"].items():
        models = _models(section["models"])
        providers.update(dict.fromkeys((name, *section["also"]), models))
    makers = [name for name, section in told["providers"].items() if section["is_maker"]]
    return PublishedList(
        source=told["source"], as_of=told["as_of"], providers=providers, makers=makers
    )


def _models(rows: Iterable[Mapping[str, Any]]) -> _Models:
    names: dict[str, PublishedFigures] = {}
    begins: list[tuple[str, PublishedFigures]] = []
    for row in rows:
        figures = _figures(row)
        names.update(dict.fromkeys(row["names"], figures))
        begins += [(each, figures) for each in row["begins"]]
    return names, tuple(sorted(begins, key=lambda each: -len(each[0])))


def _figures(row: Mapping[str, Any]) -> PublishedFigures:
    plain, cached, written, answered = row["usd"]
    return PublishedFigures(
        context_length=row["window"],
        input_cost_usd_per_mtok=plain,
        cached_input_cost_usd_per_mtok=cached,
        cache_write_cost_usd_per_mtok=written,
        output_cost_usd_per_mtok=answered,
    )
