"""Ranking v0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.catalog import Catalog, EntryKind
from helmdash.core.text import words

RANKING_VERSION: Final = "lexical-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPlan:
    """An earlier intent and the tools that were picked for it."""

    intent: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An entry's likeness to an intent: lexical, and what past plans add."""

    id: str
    kind: EntryKind
    score: float
    lexical: float
    history: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The order of a catalog's entries (positions in `catalog.entries`) and their scores."""

    order: tuple[int, ...]
    lexical: Sequence[float]
    history: Sequence[float]
    scores: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A catalog's words."""

    catalog: Catalog
    bags: tuple[frozenset[str], ...]


def prepare_index(catalog: Catalog) -> Index:
    """Index a catalog."""
    return Index(
        catalog=catalog,
        bags=tuple(
            frozenset(words(f"{e.id} {e.name} {e.description} {e.supersedes}").split())
            for e in catalog.entries
        ),
    )


def order_entries(index: Index, intent: str, history: Sequence[PastPlan] = ()) -> Ranking:
    """Order."""
    said = frozenset(words(intent).split())
    scores = [float(len(bag & said)) for bag in index.bags]
    entries = index.catalog.entries
    order = sorted(range(len(entries)), key=lambda at: (-scores[at], entries[at].id))
    return Ranking(order=tuple(order), lexical=scores, history=[0.0] * len(scores), scores=scores)


def rank(index: Index, intent: str, history: Sequence[PastPlan] = ()) -> tuple[Ranked, ...]:
    """Every entry, best first, ties by id."""
    found = order_entries(index, intent, history)
    entries = index.catalog.entries
    return tuple(
        Ranked(
            id=entries[at].id,
            kind=entries[at].kind,
            score=found.scores[at],
            lexical=found.lexical[at],
            history=found.history[at],
        )
        for at in found.order
    )
