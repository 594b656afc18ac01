"""Fits, rankings and catalogs as they leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helmdash.api.schemas import fitting
from helmdash.core.ranking.ranking import Ranked
from helmdash.queries.catalog import CatalogInfo


def ranked(entries: Sequence[Ranked]) -> fitting.RankedList:
    """The answer to POST /rank."""
    return {
        "ranked": [
            {
                "id": item.id,
                "kind": item.kind,
                "score": item.score,
                "lexical": item.lexical,
                "history": item.history,
            }
            for item in entries
        ]
    }


def catalog_info(value: CatalogInfo) -> fitting.CatalogInfo:
    """A revision without its body."""
    return {
        "name": value.name,
        "revision": value.number,
        "digest": value.digest,
        "bytes": value.bytes,
        "packs": value.packs,
        "pipelines": value.pipelines,
        "created_at": value.created_at,
    }


def catalog_detail(value: CatalogInfo, body: Any) -> fitting.CatalogDetail:
    """A revision."""
    return {**catalog_info(value), "catalog": body}
