"""A prompt's catalog before and after a Trim: the very words that the model lost.

Catalogs are kept by revision. What was shown is kept where a plan was made with the fit; else the
fit is made again from its receipt, and counts where it comes out with the same bytes. Where neither
is to be had, entries are told by name, and nothing is said of their words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from helmdash.core.budgets.budgets import Tier
from helmdash.core.catalog.catalog import CatalogEntry, CatalogError, parse_catalog
from helmdash.core.fitting.prepared import PreparedCatalog
from helmdash.core.fitting.replay import replay
from helmdash.core.text.differences import Part, differences
from helmdash.core.text.tokens import json_bytes
from helmdash.queries.fitting import catalog as catalogs
from helmdash.queries.fitting.fitting import FitView
from helmdash.records.models import CatalogRevision, PlanAttempt, PlanCatalog

# What a person reads; the ones that lost most. Comparing them takes some tens of milliseconds.
MOST_COMPARED: Final = 60
# Tries of a plan follow each other, and the last of them may come so long after it began.
_PLAN: Final = timedelta(minutes=30)
# The plan's own moment may be noted a little later.
_SLACK: Final = timedelta(minutes=1)

Source = Literal["plan", "replayed"]
Shown = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryWords:
    """An entry before and after; after_bytes None: it was removed."""

    id: str
    kind: str
    before_bytes: int
    after_bytes: int | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitWords:
    """What a fit left of a catalog, entry by entry, those that lost most first.

    source: how it is known what was shown; None: it is not, and only what was removed is told.
    whole: how many entries lost nothing. more: how many that lost something are left out.
    """

    source: Source | None
    entries: tuple[EntryWords, ...]
    whole: int
    more: int


def fit_words(*, project_id: int, fit: FitView) -> FitWords | None:
    """The words of a fit; None: its catalog is not kept (it was sent with the request, or its
    revision is gone). Three queries at most."""
    revision = _revision(project_id, fit)
    if revision is None:
        return None
    prepared = catalogs.prepared(revision=revision)
    source: Source | None = "plan"
    shown = _shown_to_a_plan(project_id, fit)
    if shown is None:
        shown = _replayed(prepared, fit)
        source = "replayed" if shown is not None else None
    lossy = sorted(
        ((lost, entry) for entry in prepared.catalog.entries if (lost := _lost(entry, shown, fit))),
        key=lambda found: (-found[0], found[1].id),
    )
    return FitWords(
        source=source,
        entries=tuple(_words(entry, shown, fit) for _, entry in lossy[:MOST_COMPARED]),
        whole=len(prepared.catalog.entries) - len(lossy),
        more=max(len(lossy) - MOST_COMPARED, 0),
    )


def _replayed(prepared: PreparedCatalog, fit: FitView) -> Shown | None:
    tier = fit.budget.get("tier")
    if tier not in tuple(Tier):
        return None
    return replay(prepared, receipt=fit.trim, tier=Tier(str(tier)))


def _lost(entry: CatalogEntry, shown: Shown | None, fit: FitView) -> int:
    """Bytes; where it is not known what was shown, only those that were removed have lost any."""
    before = json_bytes(entry.raw)
    if shown is None:
        return before if entry.id in fit.removed_ids else 0
    return before - (json_bytes(shown[entry.id]) if entry.id in shown else 0)


def _words(entry: CatalogEntry, shown: Shown | None, fit: FitView) -> EntryWords:
    after = shown.get(entry.id) if shown else None
    return EntryWords(
        id=entry.id,
        kind=entry.kind,
        before_bytes=json_bytes(entry.raw),
        after_bytes=json_bytes(after) if after is not None else None,
        parts=differences(_text(entry.raw), _text(after) if after is not None else ""),
    )


def _text(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _revision(project_id: int, fit: FitView) -> catalogs.CatalogInfo | None:
    if not fit.catalog_name:
        return None
    rows = CatalogRevision.objects.filter(
        project_id=project_id, name=fit.catalog_name, digest=fit.catalog_digest
    )
    row = rows.defer("body").order_by("-number").first()
    return catalogs.info(row) if row else None


def _shown_to_a_plan(project_id: int, fit: FitView) -> Shown | None:
    digests = PlanAttempt.objects.filter(
        plan__project_id=project_id,
        plan__started_at__gte=fit.created_at - _PLAN,
        plan__started_at__lte=fit.created_at + _SLACK,
        fit_name=fit.id,
        purpose__in=("plan", "route"),
    ).values("catalog_digest")
    bodies = PlanCatalog.objects.filter(project_id=project_id, digest__in=digests)
    body = bodies.values_list("body", flat=True).first()
    if body is None:
        return None
    try:
        return {entry.id: entry.raw for entry in parse_catalog(json.loads(body)).entries}
    except (ValueError, CatalogError):
        return None
