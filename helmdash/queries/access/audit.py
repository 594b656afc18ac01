"""The audit log to read: who changed what, when, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet

from helmdash.core.access.permissions import Actor, Right, may, require
from helmdash.queries.lists.paging import Page, decode_number_cursor, encode_cursor
from helmdash.records.models import AuditEntry
from helmdash.records.querysets import contains

# What may stand in an entry, for the filter.
KINDS: Final = (
    *("account", "alert channel", "alert rule", "alias", "budget", "catalog", "conversation"),
    *("demo", "exporter", "failures", "key", "member", "project", "suggestion", "upstream", "view"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field, before and after; None: it was, or is, not set."""

    field: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change. address None: it came by none. is_wide: it is no project's own."""

    id: int
    at: datetime
    by: str
    way: str
    address: str | None
    kind: str
    action: str
    subject: str
    changes: tuple[Change, ...]
    is_wide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilters:
    """What to look for; empty and None: everything. by, subject: a part of them, in any case."""

    since: datetime | None = None
    until: datetime | None = None
    kind: str = ""
    by: str = ""
    subject: str = ""


def page(
    *,
    actor: Actor,
    project_id: int,
    filters: AuditFilters,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Entry]:
    """Entries of a project, newest first; for superusers also those that are no project's own.

    One query. cursor None: from the newest. Raises Forbidden and BadCursor.
    """
    require(actor, Right.READ_AUDIT, project_id=project_id)
    seen = Q(project_id=project_id)
    if may(actor, Right.READ_AUDIT, project_id=None):
        seen |= Q(project_id__isnull=True)
    rows = _filtered(AuditEntry.objects.filter(seen), filters).order_by("-id")
    if cursor:
        rows = rows.filter(id__lt=decode_number_cursor(cursor))
    found = list(rows[: limit + 1])
    more = len(found) > limit
    return Page(
        items=tuple(_entry(row) for row in found[:limit]),
        next=encode_cursor(found[limit - 1].pk) if more else None,
    )


def _filtered(rows: QuerySet[AuditEntry], filters: AuditFilters) -> QuerySet[AuditEntry]:
    wanted = {
        "at__gte": filters.since,
        "at__lt": filters.until,
        "kind": filters.kind,
    }
    rows = rows.filter(**{name: value for name, value in wanted.items() if value})
    for field, text in (("by", filters.by), ("subject", filters.subject)):
        rows = rows.filter(contains(field, text)) if text else rows
    return rows


def _entry(row: AuditEntry) -> Entry:
    return Entry(
        id=row.pk,
        at=row.at,
        by=row.by,
        way=row.way,
        address=row.address,
        kind=row.kind,
        action=row.action,
        subject=row.subject,
        changes=tuple(
            Change(field=field, before=before, after=after) for field, before, after in row.changes
        ),
        is_wide=row.project_id is None,
    )
