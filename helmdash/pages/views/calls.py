"""Calls: the list with its filters, and all that is known of one."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from helmdash.operations.recorder.catching_up import wait_for_call
from helmdash.pages import scope
from helmdash.pages.beside import beside
from helmdash.pages.guards import require_storable
from helmdash.pages.lists.list_bars import call_bars
from helmdash.pages.lists.list_forms import CALL_VARIANTS, CallFilterForm
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.lists.query_bar import settled
from helmdash.pages.lists.saved_views import with_views
from helmdash.pages.parts import snippets
from helmdash.pages.parts.charts import composition
from helmdash.pages.parts.lists.call_groups import plans_among
from helmdash.pages.render import PageRequest, live, show
from helmdash.pages.views import panels
from helmdash.pages.zones import reader_zone
from helmdash.queries import distinct_values, line_edits
from helmdash.queries.budgets import budgets
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.spending import cost_of_call
from helmdash.queries.conversations.curve import call_before
from helmdash.queries.fitting import fitting
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.lists.reach import MOST_TRIED


@require_safe
@with_views("calls")
@beside(panels.call)
@live
def call_list(request: PageRequest) -> HttpResponse:
    """The page of calls, or the fragment of its rows; the newest first."""
    project = scope.current_project(request)
    form = CallFilterForm(request.GET, now=request.now, zone=reader_zone(request))
    leads_on = settled(request, form, LISTS["calls"].controls)
    if leads_on is not None:
        return leads_on
    context: dict[str, object] = {"form": form, "most_tried": MOST_TRIED, "kind": LISTS["calls"]}
    if form.is_valid():
        filters = form.filters()
        zone = reader_zone(request)
        try:
            context["page"] = call_listing.page(
                project_id=project.id,
                filters=filters,
                cursor=request.GET.get("cursor"),
                sort=form.cleaned_data["sort"],
            )
            context["bars"] = call_bars(
                project_id=project.id, filters=filters, now=request.now, zone=zone
            )
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
    if not request.htmx:
        context |= {
            "models": distinct_values.values(project_id=project.id, column="model_key"),
            "clients": distinct_values.values(project_id=project.id, column="client_name"),
            "purposes": distinct_values.values(project_id=project.id, column="purpose"),
            "packs": distinct_values.values(project_id=project.id, column="pack"),
            "variants": CALL_VARIANTS,
        }
    return show(
        request,
        "pages/calls.html",
        context,
        fragment="pages/_calls.html",
        status=200 if form.is_valid() else 400,
    )


@require_safe
def call_page(request: PageRequest, name: str) -> HttpResponse:
    """One call: what was sent, what was cut, what came back, and what we make of it."""
    require_storable(name)
    project = scope.current_project(request)
    wait_for_call(project.id, name)
    detail = calls.find(project_id=project.id, call_id=name)
    if detail is None:
        return scope.elsewhere(request, "call", name)
    call = detail.call
    fit_id = call.fit_id
    base = request.build_absolute_uri("/").rstrip("/")
    correlation_id = detail.call.correlation_id
    fills = composition.fill_rows(
        call.composition, call.sent.images, *call_before(project_id=project.id, call=call)
    )
    rules = budgets.table(project_id=project.id).for_conversation(call.conversation)
    budget = rules.lookup(call.model, key=call.model_key, client_window=call.client_window)
    context = {
        "fills": fills,
        "grew": composition.growth(fills),
        "tools": composition.tool_rows(detail.offered, call.sent.tools_bytes, fills),
        "detail": detail,
        "call": call,
        "today": line_edits.judged_today(line_edits.subject_of_call(call), budget),
        "plan_id": correlation_id if plans_among([correlation_id], project_id=project.id) else None,
        "budget": budget,
        "cost_usd": cost_of_call(call, budget),
        "fit": fitting.find(project_id=project.id, fit_id=fit_id) if fit_id else None,
        "curl": snippets.post_call(base, snippets.recorded_again(detail)),
    }
    return show(request, "pages/call.html", context)
