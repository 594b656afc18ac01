"""Storing catalogs: each change of a named catalog is a new, numbered revision."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from helmdash.core.catalog.catalog import (
    Catalog,
    CatalogError,
    EntryKind,
    FieldError,
    parse_catalog,
)
from helmdash.core.text.tokens import compact_json
from helmdash.records.models import CatalogRevision, Project
from helmdash.records.statements.column_values import storable

# In force, an empty catalog would quietly leave every fit without a tool.
_NO_ENTRY = "has no pack and no pipeline; give it at least one"
# Kept as given or not at all: unlike a recorded text, a catalog is not changed to be stored.
_NOT_STORABLE = "holds the character U+0000, which cannot be stored; take it out"


class RevisedMeanwhile(Exception):
    """There is a newer revision than the one that the new one was to follow."""


def storable_catalog(body: object) -> Catalog:
    """The catalog that a body is, where it can be a revision. Raises CatalogError."""
    catalog = parse_catalog(body)
    if not catalog.entries:
        raise CatalogError((FieldError(field="catalog", message=_NO_ENTRY),))
    if storable(catalog.raw) != catalog.raw:
        raise CatalogError((FieldError(field="catalog", message=_NOT_STORABLE),))
    return catalog


def add_revision(
    *,
    project_id: int,
    name: str,
    body: object,
    now: datetime,
    make_current: bool,
    after: int | None = None,
) -> tuple[CatalogRevision, bool]:
    """Store a catalog under a name; give its row, and whether it is a new one.

    The same bytes as the newest revision of the name give that revision again. after: the number of
    the newest one as whoever stores it saw it; None: whichever it is. Raises CatalogError naming
    the fields of a malformed catalog, and RevisedMeanwhile.
    """
    catalog = storable_catalog(body)
    text = compact_json(catalog.raw)
    digest = hashlib.sha256(text.encode()).hexdigest()
    with transaction.atomic():
        # The project's row is the lock under which revisions are numbered.
        project = Project.objects.select_for_update().get(pk=project_id)
        named = CatalogRevision.objects.filter(project=project, name=name)
        row = named.order_by("-number").first()
        if row is not None and after is not None and row.number != after:
            raise RevisedMeanwhile
        is_new = row is None or row.digest != digest
        if row is None or is_new:
            number = (named.aggregate(newest=Max("number"))["newest"] or 0) + 1
            packs = sum(entry.kind is EntryKind.PACK for entry in catalog.entries)
            row = CatalogRevision.objects.create(
                project=project,
                name=name,
                number=number,
                body=text,
                digest=digest,
                bytes=len(text.encode()),
                packs=packs,
                pipelines=len(catalog.entries) - packs,
                created_at=now,
            )
        if make_current and project.current_catalog_id != row.pk:
            project.current_catalog = row
            project.save(update_fields=["current_catalog"])
    return row, is_new
