"""Ranking a catalog for an intent: the whole order, with what each score is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.ranking.ranking import Index, PastPlan, Ranked, prepare_index, rank
from helmdash.queries.fitting import catalog as catalogs


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedList:
    """Every entry, best first."""

    ranked: tuple[Ranked, ...]


class UnknownCatalog(Exception):
    """There is nothing to rank: none given, none by that name, or none in force."""


def rank_catalog(
    *,
    project_id: int,
    intent: str,
    catalog: object | None,
    catalog_name: str | None,
    history: Sequence[PastPlan],
) -> RankedList:
    """Every entry of a catalog (inline, by name, or with neither the current one), best first.

    Raises UnknownCatalog, or CatalogError naming the fields of a malformed catalog.
    """
    return RankedList(ranked=rank(_index(project_id, catalog, catalog_name), intent, history))


def _index(project_id: int, catalog: object | None, name: str | None) -> Index:
    if catalog is not None:
        return prepare_index(parse_catalog(catalog))
    found = catalogs.find(project_id=project_id, name=name)
    if found is None:
        raise UnknownCatalog(
            f"there is no catalog called {name}; import it first or send `catalog`"
            if name
            else "send `catalog` or `catalog_name`: this project has no current catalog"
        )
    return catalogs.prepared(revision=found).index
