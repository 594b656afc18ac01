"""Catalogs by name and revision, prepared for fitting once per process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any

from helmdash.answers import HIDDEN, INLINE, JsonName
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.catalog.schema import CatalogJson
from helmdash.core.fitting.selection import PreparedCatalog, prepare
from helmdash.records.models import CatalogRevision, Project

# Prepared catalogs kept in memory: a revision of a thousand entries takes a few megabytes.
_PREPARED = 16
_MOST_WEIGHED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogInfo:
    """One imported catalog, without its body."""

    id: Annotated[int, HIDDEN]
    name: str
    number: Annotated[int, JsonName("revision")]
    digest: str
    bytes: int
    packs: int
    pipelines: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDetail:
    """One imported catalog."""

    info: Annotated[CatalogInfo, INLINE]
    catalog: CatalogJson


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogList:
    """Revisions, newest first, at most 50."""

    items: tuple[CatalogInfo, ...]
    next: None = None


def find(*, project_id: int, name: str | None = None) -> CatalogInfo | None:
    """The newest revision of a name; name None: the project's current catalog. None: there is
    none."""
    if name is None:
        project = Project.objects.select_related("current_catalog").get(pk=project_id)
        return info(project.current_catalog) if project.current_catalog else None
    newest = CatalogRevision.objects.filter(project_id=project_id, name=name).order_by("-number")
    row = newest.defer("body").first()
    return info(row) if row else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSize:
    """How much work a catalog is: nothing where there is none."""

    entries: int = 0
    bytes: int = 0


def size(*, project_id: int | None, name: str | None = None) -> CatalogSize:
    """The size of the catalog that `find` finds. project_id None: of the largest in any project."""
    if project_id is not None:
        return _size(find(project_id=project_id, name=name))
    rows = CatalogRevision.objects.defer("body").order_by("-id")
    current = Project.objects.values("current_catalog_id")
    rows = rows.filter(pk__in=current) if name is None else rows.filter(name=name)
    # Every row is read past its body: a name with many revisions is judged by the newest.
    found = [_size(info(row)) for row in rows[:_MOST_WEIGHED]]
    return max(found, key=lambda each: each.entries, default=CatalogSize())


def detail(*, project_id: int, name: str) -> CatalogDetail | None:
    """The newest revision of a name with its body; None where nothing has the name."""
    info = find(project_id=project_id, name=name)
    if info is None:
        return None
    return CatalogDetail(info=info, catalog=body(revision_id=info.id))


def revisions(*, project_id: int, limit: int = 50) -> CatalogList:
    """The imported catalogs of a project, without their bodies, newest first."""
    rows = CatalogRevision.objects.filter(project_id=project_id).defer("body")
    found = rows.order_by("-created_at", "-id")[:limit]
    return CatalogList(items=tuple(info(row) for row in found))


def body(*, revision_id: int) -> Mapping[str, Any]:
    """The catalog as it was imported."""
    text = CatalogRevision.objects.values_list("body", flat=True).get(pk=revision_id)
    value: dict[str, Any] = json.loads(text)
    return value


def prepared(*, revision: CatalogInfo) -> PreparedCatalog:
    """The revision with its ranking index, kept in memory for the next fit."""
    return _prepared(revision.id, revision.digest)


@lru_cache(maxsize=_PREPARED)
def _prepared(revision_id: int, digest: str) -> PreparedCatalog:
    # The digest is part of the key, so that an id given anew (a restored database) is no trap.
    return prepare(parse_catalog(body(revision_id=revision_id)))


def _size(info: CatalogInfo | None) -> CatalogSize:
    if info is None:
        return CatalogSize()
    return CatalogSize(entries=info.packs + info.pipelines, bytes=info.bytes)


def info(row: CatalogRevision) -> CatalogInfo:
    """The value behind a row."""
    return CatalogInfo(
        id=row.pk,
        name=row.name,
        number=row.number,
        digest=row.digest,
        bytes=row.bytes,
        packs=row.packs,
        pipelines=row.pipelines,
        created_at=row.created_at,
    )
