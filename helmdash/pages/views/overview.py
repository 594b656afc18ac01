"""The first page: where every conversation stands, or how to make the first call."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right
from helmdash.core.budgets.levels import LEVELS
from helmdash.core.text.time_ranges import parse_range
from helmdash.operations.access import keys
from helmdash.pages import scope
from helmdash.pages.addresses import in_project
from helmdash.pages.guards import post_only, takes
from helmdash.pages.lists.filters import OverviewForm
from helmdash.pages.lists.list_bars import call_bars
from helmdash.pages.parts import snippets
from helmdash.pages.parts.charts import drawings
from helmdash.pages.render import PageRequest, etag, live, show, state
from helmdash.pages.zones import reader_zone
from helmdash.queries import overview
from helmdash.queries.calls import rates
from helmdash.queries.calls.filters import CallFilters

# The order people read: what is worst comes first.
_ORDER = tuple(sorted(LEVELS, key=lambda level: LEVELS[level].position))


@require_safe
@live
def overview_page(request: PageRequest) -> HttpResponse:
    """Counters, what needs somebody, what came in last; before the first call, how to make one."""
    scoped = scope.read(request)
    if not scoped.has_calls:
        return _waiting(request, key=None)
    zone = reader_zone(request)
    form = OverviewForm(request.GET, now=request.now, zone=zone)
    asked = form.time_range if form.is_valid() else parse_range(form.default, now=request.now)
    found = overview.overview(
        project_id=scoped.project.id, now=request.now, since=asked.since, until=asked.until
    )
    counters = tuple((level, found.counters[level]) for level in _ORDER)
    context: dict[str, object] = {
        "overview": found,
        "levels_today": found.levels_today,
        "counters": counters,
        "total": sum(count for _, count in counters),
        "shares": drawings.shares(counters),
        "form": form,
        "range": form.range_text if form.is_valid() else form.default,
    }
    if form.is_valid():
        context["bars"] = call_bars(
            project_id=scoped.project.id,
            filters=CallFilters(**form.values()),
            now=request.now,
            zone=zone,
        )
        context["rates"] = rates.rates(
            project_id=scoped.project.id, since=asked.since, until=asked.until, now=request.now
        )
    return show(
        request,
        "pages/overview.html",
        context,
        fragment="pages/_overview.html",
        status=200 if form.is_valid() else 400,
    )


@post_only("overview")
@takes(Right.MANAGE_KEYS)
def make_first_key(request: PageRequest) -> HttpResponse:
    """Make a key and show it in the snippet, this once."""
    scoped = scope.read(request)
    now = timezone.now()
    try:
        made = keys.create_key(
            actor=scoped.actor,
            name=f"first call {now:%Y-%m-%d %H:%M:%S}",
            scopes=("record", "read", "fit"),
            project=(scoped.home if scoped.project.is_demo else scoped.project).slug,
        )
    except keys.AccessError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect("/")
    request.etag = etag(
        in_project("/", scoped.project.slug), state(scoped, now, reader_zone(request))
    )
    response = _waiting(request, key=made.secret)
    response["Cache-Control"] = "no-store"
    return response


def _waiting(request: PageRequest, *, key: str | None) -> HttpResponse:
    base = request.build_absolute_uri("/").rstrip("/")
    context = {
        "curl": snippets.first_call_curl(base, key),
        "python": snippets.first_call_python(base, key),
        "key": key,
        "key_variable": snippets.KEY_VARIABLE,
    }
    return show(request, "pages/overview.html", context, fragment="pages/_overview.html")
