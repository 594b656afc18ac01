"""Plans and routes: the list, one with all it took, and whether it was followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from helmdash.core.access.permissions import Right
from helmdash.operations.planning import feedback
from helmdash.pages import scope
from helmdash.pages.beside import beside
from helmdash.pages.guards import require_storable, takes
from helmdash.pages.lists.list_bars import plan_bars
from helmdash.pages.lists.list_forms import PlanFilterForm
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.lists.query_bar import settled
from helmdash.pages.lists.saved_views import with_views
from helmdash.pages.parts import snippets
from helmdash.pages.parts.plans import parts_of
from helmdash.pages.plan_again import asked_again
from helmdash.pages.render import (
    PageRequest,
    address,
    etag,
    minute,
    show,
    unless_known,
)
from helmdash.pages.views import panels
from helmdash.pages.zones import reader_zone
from helmdash.queries import distinct_values, plans
from helmdash.queries.fitting import catalog
from helmdash.queries.lists.paging import BadCursor, Page
from helmdash.queries.plans import PlanItem, PlanView
from helmdash.queries.plans.filters import MOST_TRIED

_EXAMPLE = {"user_intent": "Draft a blog post about our release", "model": "openai/gpt-4o"}


@require_safe
@with_views("plans")
@beside(panels.plan)
def plan_list(request: PageRequest) -> HttpResponse:
    """The page of plans and routes, or the fragment of its rows; the newest first."""
    request.now = timezone.now()
    project = scope.current_project(request)
    form = PlanFilterForm(request.GET, now=request.now, zone=reader_zone(request))
    leads_on = settled(request, form, LISTS["plans"].controls)
    if leads_on is not None:
        return leads_on
    context: dict[str, object] = {"form": form, "most_tried": MOST_TRIED, "kind": LISTS["plans"]}
    filters: dict[str, Any] = {}
    if form.is_valid():
        filters = plans.spelt_out(project_id=project.id, filters=form.filters())
        try:
            page = plans.page(
                project_id=project.id,
                now=request.now,
                cursor=request.GET.get("cursor"),
                sort=form.cleaned_data["sort"],
                **filters,
            )
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
        else:
            context |= {"page": page, "tools": _tools(page.items)}
            request.etag = etag(address(request), f"{page}{minute(request.now)}")

    def answer() -> HttpResponse:
        return _list(request, form, filters, context)

    return unless_known(request, answer) if "page" in context else answer()


@require_safe
def plan_page(request: PageRequest, name: str) -> HttpResponse:
    """One plan; while it is being made, its fragment polls."""
    require_storable(name)
    request.now = timezone.now()
    project = scope.current_project(request)
    detail = plans.find(project_id=project.id, plan_id=name, now=request.now)
    if detail is None:
        return scope.elsewhere(request, "plan", name)
    request.etag = etag(address(request), f"{detail}{minute(request.now)}")

    def answer() -> HttpResponse:
        return show(
            request,
            "pages/plan.html",
            _plan(request, detail),
            fragment="pages/_plan.html",
        )

    return unless_known(request, answer)


@require_POST
@takes(Right.GIVE_FEEDBACK)
def note_followed(request: PageRequest, name: str) -> HttpResponse:
    """Say whether a plan's steps were carried out: the ranking learns from those that were. Raises
    Http404 for a plan that does not exist."""
    require_storable(name)
    said = {"yes": True, "no": False}.get(request.POST.get("followed", ""))
    if said is None:
        messages.error(request, "followed: send yes or no")
        return HttpResponseRedirect(reverse("plan", args=[name]))
    project = scope.current_project(request)
    try:
        feedback.note_followed(
            actor=scope.current_actor(request), project=project, plan_id=name, followed=said
        )
    except feedback.NoSuchPlan:
        raise Http404(f"There is no plan {name} in {project.name}.") from None
    messages.success(
        request,
        "Noted: the plan was followed. Like intents rank its tools higher."
        if said
        else "Noted: the plan was not followed. It teaches the ranking nothing.",
    )
    return HttpResponseRedirect(reverse("plan", args=[name]))


def _list(
    request: PageRequest,
    form: PlanFilterForm,
    filters: Mapping[str, object],
    found: Mapping[str, object],
) -> HttpResponse:
    context = dict(found)
    page = context.get("page")
    project = scope.current_project(request)
    if isinstance(page, Page):
        newest = plans.newest_plans(project_id=project.id, now=request.now, **filters)
        context["bars"] = plan_bars(
            newest,
            project_id=project.id,
            filters=filters,
            now=request.now,
            zone=reader_zone(request),
        )
        if page.items and not request.GET.get("cursor"):
            context["totals"] = plans.totals(
                newest, project_id=project.id, now=request.now, **filters
            )
            context["most"] = plans.MOST_READ
            if form.cleaned_data["by"] == "intent":
                context["intents"] = plans.intents(newest)
    if isinstance(page, Page) and not page.items and not form.is_narrowed:
        context |= _first_plan(request)
    if not request.htmx:
        context["models"] = distinct_values.values(project_id=project.id, column="model_key")
    return show(
        request,
        "pages/plans.html",
        context,
        fragment="pages/_plans.html",
        status=200 if form.is_valid() else 400,
    )


def _plan(request: PageRequest, detail: PlanView) -> Mapping[str, object]:
    project = scope.current_project(request)
    plan = detail.item
    is_running = plan.outcome == "running"
    form = reverse("try-route" if plan.kind == "route" else "try-plan")
    return {
        "detail": detail,
        "plan": plan,
        "is_running": is_running,
        "parts": parts_of(detail.result, detail.steps),
        "attempts": detail.attempts,
        "carried": plans.carried_out(project_id=project.id, plan=plan),
        "similar": ()
        if is_running
        else plans.similar(project_id=project.id, plan_id=plan.id, now=request.now),
        "again": f"{form}?{urlencode({'like': plan.id})}",
        "go_on": f"{form}?{urlencode({'continues': plan.id})}",
        "curl": snippets.post(_url(request, plan.kind), asked_again(detail)),
    }


def _first_plan(request: PageRequest) -> dict[str, object]:
    project = scope.current_project(request)
    return {
        "curl": snippets.post(_url(request, "plan"), _EXAMPLE),
        "has_catalog": catalog.find(project_id=project.id) is not None,
    }


def _url(request: PageRequest, kind: str) -> str:
    return request.build_absolute_uri(f"/api/v1/{kind}")


def _tools(items: tuple[PlanItem, ...]) -> list[str]:
    """What the filter offers: the tools of the plans in view."""
    return sorted({tool for item in items for tool in item.tools})
