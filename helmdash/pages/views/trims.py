"""Fits: what was cut from a catalog to make it fit, for whom, and by which budget."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right, may
from helmdash.core.evidence.net_value import Shortening
from helmdash.pages import scope
from helmdash.pages.beside import beside
from helmdash.pages.guards import require_storable
from helmdash.pages.lists.list_bars import trim_bars
from helmdash.pages.lists.list_forms import TrimFilterForm
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.lists.query_bar import settled
from helmdash.pages.lists.saved_views import with_views
from helmdash.pages.render import PageRequest, show
from helmdash.pages.views import panels
from helmdash.pages.zones import reader_zone
from helmdash.queries.evidence.net_value import MOST_BESIDE, net_report
from helmdash.queries.fitting import fit_uses, fitting, trims
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.plans.picked_later import MOST_READ, picked_later


@require_safe
@with_views("trims")
@beside(panels.fit)
def trim_list(request: PageRequest) -> HttpResponse:
    """The page of recorded fits, or the fragment of its figures and rows; the newest first."""
    project = scope.current_project(request)
    request.now = timezone.now()
    kind = LISTS["trims"]
    form = TrimFilterForm(request.GET, now=request.now, zone=reader_zone(request))
    leads_on = settled(request, form, kind.controls)
    if leads_on is not None:
        return leads_on
    context: dict[str, object] = {
        "form": form,
        "most_tried": trims.MOST_READ,
        "kind": LISTS["trims"],
    }
    if form.is_valid():
        filters, cursor = form.filters(), request.GET.get("cursor") or None
        try:
            context["page"] = found = trims.page(
                project_id=project.id,
                filters=filters,
                cursor=cursor,
                sort=form.cleaned_data["sort"],
            )
            if not cursor:
                context["bars"] = trim_bars(
                    found,
                    project_id=project.id,
                    filters=filters,
                    now=request.now,
                    zone=reader_zone(request),
                )
            if found.totals is not None:
                context["picked"] = picked_later(project_id=project.id, fit_ids=found.cut)
                context["most_near"] = MOST_READ
                context["net"] = net_report(
                    project_id=project.id,
                    since=filters.since,
                    until=filters.until,
                    model=filters.model,
                    kind=Shortening.TRIM,
                    limit=0,
                    most=MOST_BESIDE,
                )
                context["most_net"] = MOST_BESIDE
                names = ("range", "since", "until", "model")
                context["net_query"] = {
                    **{name: request.GET[name] for name in names if request.GET.get(name)},
                    "kind": Shortening.TRIM.value,
                    "newest": str(MOST_BESIDE),
                }
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
    return show(
        request,
        "pages/trims.html",
        context,
        fragment="pages/_trims.html",
        status=200 if form.is_valid() else 400,
    )


@require_safe
def trim_page(request: PageRequest, name: str) -> HttpResponse:
    """One fit with its whole Trim, and what it was for."""
    require_storable(name)
    project = scope.current_project(request)
    fit = fitting.find(project_id=project.id, fit_id=name)
    if fit is None:
        return scope.elsewhere(request, "fit", name)
    uses = fit_uses.uses(project_id=project.id, fit=fit)
    owner = uses.edit.project_id if uses.edit else None
    context = {
        "fit": fit,
        "uses": uses,
        "may_see_edits": may(scope.current_actor(request), Right.CHANGE_BUDGETS, project_id=owner),
    }
    return show(request, "pages/trim.html", context)
