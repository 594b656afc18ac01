"""Stored fits: what was cut from a catalog, and by which budget."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from helmdash.queries.paging import Page, decode_time_cursor, encode_cursor
from helmdash.records.models import Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class FitView:
    """One fit with its Trim (the `compaction` object of the API) and the budget of that moment."""

    id: str
    model: str
    intent: str | None
    catalog_name: str | None
    before_bytes: int
    after_bytes: int
    fits: bool
    trim: dict[str, object]
    budget: dict[str, object]
    caller: str | None
    created_at: datetime


def find(*, project_id: int, fit_id: str) -> FitView | None:
    """One fit by the id its response carried; None if it does not exist in the project."""
    row = Fit.objects.filter(project_id=project_id, name=fit_id).first()
    return _view(row) if row else None


def page(*, project_id: int, cursor: str | None = None, limit: int = 50) -> Page[FitView]:
    """Fits, newest first. One query. cursor None: from the newest. Raises BadCursor for one that no
    page of this list gave."""
    rows = Fit.objects.filter(project_id=project_id).order_by("-created_at", "-id")
    if cursor:
        at, pk = decode_time_cursor(cursor)
        rows = rows.filter(created_at__lte=at).exclude(created_at=at, id__gte=pk)
    found = list(rows[: limit + 1])
    more = found[limit - 1] if len(found) > limit else None
    return Page(
        items=tuple(_view(row) for row in found[:limit]),
        next=encode_cursor(more.created_at, more.pk) if more else None,
    )


def _view(row: Fit) -> FitView:
    return FitView(
        id=row.name,
        model=row.model,
        intent=row.intent or None,
        catalog_name=row.catalog_name or None,
        before_bytes=row.before_bytes,
        after_bytes=row.after_bytes,
        fits=row.fits,
        trim=row.trim,
        budget=row.budget,
        caller=row.caller or None,
        created_at=row.created_at,
    )
