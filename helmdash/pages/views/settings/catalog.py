"""The project's current catalog, entry by entry, as a model would read it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.catalog.catalog import CatalogEntry
from helmdash.core.text.tokens import json_bytes
from helmdash.pages import scope
from helmdash.pages.render import PageRequest, show
from helmdash.queries.fitting import catalog

# A page of more entries than this is searched, not read.
_MOST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """One entry with its size as compact JSON."""

    entry: CatalogEntry
    bytes: int


@require_safe
def catalog_page(request: PageRequest) -> HttpResponse:
    """The current catalog; ?q= narrows it to entries that mention a text."""
    request.now = timezone.now()
    project = scope.current_project(request)
    info = catalog.find(project_id=project.id)
    wanted = request.GET.get("q", "").strip()
    context: dict[str, object] = {"info": info, "q": wanted, "most": _MOST}
    if info is not None:
        entries = catalog.prepared(revision=info).catalog.entries
        rows = [
            EntryRow(entry=entry, bytes=json_bytes(entry.raw))
            for entry in entries
            if _mentions(entry, wanted.casefold())
        ]
        context |= {"rows": rows[:_MOST], "found": len(rows), "total": len(entries)}
    return show(request, "pages/catalog.html", context, fragment="pages/_catalog.html")


def _mentions(entry: CatalogEntry, wanted: str) -> bool:
    words = (entry.id, entry.name, entry.description, *entry.metadata_texts("intent_keywords"))
    return any(wanted in word.casefold() for word in words)
