"""Fits: what was cut from a catalog to make it fit, and by which budget."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.guards import require_storable
from helmdash.pages.render import PageRequest, show
from helmdash.queries import fitting
from helmdash.queries.paging import BadCursor


@require_safe
def trim_list(request: PageRequest) -> HttpResponse:
    """The page of recorded fits, or the fragment of its rows; the newest first."""
    project = scope.current_project(request)
    request.now = timezone.now()
    context: dict[str, object] = {}
    try:
        context["page"] = fitting.page(
            project_id=project.id, cursor=request.GET.get("cursor") or None
        )
    except BadCursor:
        context["problem"] = "cursor: this link does not lead anywhere; start at the top"
    return show(
        request,
        "pages/trims.html",
        context,
        fragment="pages/_trims.html",
        status=400 if "problem" in context else 200,
    )


@require_safe
def trim_page(request: PageRequest, name: str) -> HttpResponse:
    """One fit with its whole Trim."""
    require_storable(name)
    project = scope.current_project(request)
    fit = fitting.find(project_id=project.id, fit_id=name)
    if fit is None:
        return scope.elsewhere(request, "fit", name)
    return show(request, "pages/trim.html", {"fit": fit})
