"""Importing catalogs: each import is a new revision, unless nothing changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from django.db import transaction

from helmdash.answers import HIDDEN, JsonName
from helmdash.core.access.permissions import Actor, Right, require
from helmdash.records.audit import note_row
from helmdash.records.revisions import RevisedMeanwhile, add_revision

__all__ = ["Imported", "RevisedMeanwhile", "import_catalog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import led to."""

    revision_id: Annotated[int, HIDDEN]
    name: str
    number: Annotated[int, JsonName("revision")]
    is_new: bool


def import_catalog(
    *,
    actor: Actor,
    project_id: int,
    name: str,
    body: object,
    now: datetime,
    make_current: bool = True,
    after: int | None = None,
) -> Imported:
    """Store a catalog under a name and, unless told otherwise, put it in force for the project.

    The same bytes as the newest revision of the name give that revision again. after: the number of
    the newest revision as whoever imports saw it; None: whichever it is. Raises CatalogError naming
    the fields of a malformed catalog, RevisedMeanwhile, and Forbidden.
    """
    require(actor, Right.CHANGE_CATALOGS, project_id=project_id)
    with transaction.atomic():
        row, is_new = add_revision(
            project_id=project_id,
            name=name,
            body=body,
            now=now,
            make_current=make_current,
            after=after,
        )
        if is_new:
            note_row(actor=actor, row=row, before=None)
    return Imported(revision_id=row.pk, name=name, number=row.number, is_new=is_new)
