"""A thin adapter for public tool-selection data: measures `core.ranking.ranking` from outside.

The measuring script calls `rank(entries, intent, history) -> names, best first`, with the same
`entries` object for all queries of a suite; `fitted` gives the names that a tier C catalog of
10,000 bytes still shows, which is what counts in the end. The data is not part of this project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict, TypeVar

from helmdash.core.catalog.catalog import Catalog, CatalogEntry, EntryKind
from helmdash.core.fitting.selection import PreparedCatalog, prepare, select
from helmdash.core.ranking.ranking import Index, PastPlan, order_entries, prepare_index
from tests.builders import make_budget

S = TypeVar("S")
T = TypeVar("T")


class BenchEntry(TypedDict):
    """A tool as the data gives it."""

    name: str
    description: str
    keywords: list[str]


class BenchPlan(TypedDict):
    """An earlier plan as the data gives it."""

    intent: str
    tools: list[str]


_TIER_C = make_budget(allows_llm_filter=False)

# The objects themselves are kept beside what was made of them, so that their ids stay theirs.
_indexes: dict[int, tuple[Sequence[BenchEntry], Index]] = {}
_prepared: dict[int, tuple[Sequence[BenchEntry], PreparedCatalog]] = {}
_histories: dict[int, tuple[Sequence[BenchPlan], tuple[PastPlan, ...]]] = {}


def rank(entries: Sequence[BenchEntry], intent: str, history: Sequence[BenchPlan]) -> list[str]:
    """All names, best first."""
    index = _kept(_indexes, entries, lambda: prepare_index(_catalog(entries)))
    past = _kept(_histories, history, lambda: _past(history))
    return [index.entries[at].id for at in order_entries(index, intent, past).order]


def fitted(entries: Sequence[BenchEntry], intent: str, history: Sequence[BenchPlan]) -> list[str]:
    """The names of the entries that a fitted tier C catalog shows, best first."""
    prepared = _kept(_prepared, entries, lambda: prepare(_catalog(entries)))
    past = _kept(_histories, history, lambda: _past(history))
    fit = select(prepared, intent=intent, budget=_TIER_C, history=past)
    return [entry.id for entry in fit.trim.kept]


def _kept(known: dict[int, tuple[S, T]], source: S, make: Callable[[], T]) -> T:
    if id(source) not in known:
        if len(known) > 4:
            known.clear()
        known[id(source)] = source, make()
    return known[id(source)][1]


def _catalog(entries: Sequence[BenchEntry]) -> Catalog:
    """Not through parse_catalog: the timing data repeats some names, which it would refuse."""
    packs = [
        {
            "name": entry["name"],
            "description": entry["description"],
            "metadata": {"intent_keywords": entry["keywords"]},
        }
        for entry in entries
    ]
    return Catalog(
        entries=tuple(
            CatalogEntry(kind=EntryKind.PACK, id=entry["name"], name=entry["name"], raw=pack)
            for entry, pack in zip(entries, packs, strict=True)
        ),
        raw={"packs": packs},
    )


def _past(history: Sequence[BenchPlan]) -> tuple[PastPlan, ...]:
    return tuple(PastPlan(intent=plan["intent"], tools=tuple(plan["tools"])) for plan in history)
