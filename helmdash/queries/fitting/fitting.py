"""Stored fits: what was cut from a catalog, and by which budget."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from helmdash.records.models import Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class FitView:
    """One fit with its Trim (the `compaction` object of the API) and the budget of that moment."""

    id: str
    model: str
    intent: str | None
    catalog_name: str | None
    catalog_digest: str
    before_bytes: int
    after_bytes: int
    fits: bool
    trim: dict[str, object]
    budget: dict[str, object]
    caller: str | None
    created_at: datetime

    @property
    def removed_ids(self) -> frozenset[str]:
        """The entries that went."""
        removed = self.trim.get("removed")
        entries = removed if isinstance(removed, list) else []
        return frozenset(str(each.get("id")) for each in entries if isinstance(each, dict))


def find(*, project_id: int, fit_id: str) -> FitView | None:
    """One fit by the id its response carried; None if it does not exist in the project."""
    row = Fit.objects.filter(project_id=project_id, name=fit_id).first()
    return view(row) if row else None


def view(row: Fit) -> FitView:
    """The value behind a row."""
    return FitView(
        id=row.name,
        model=row.model,
        intent=row.intent or None,
        catalog_name=row.catalog_name or None,
        catalog_digest=row.catalog_digest,
        before_bytes=row.before_bytes,
        after_bytes=row.after_bytes,
        fits=row.fits,
        trim=row.trim,
        budget=row.budget,
        caller=row.caller or None,
        created_at=row.created_at,
    )
