"""Does trimming pay: sums of a range, and each shortened prompt with the calls it is from."""

from __future__ import annotations

from django.http import HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.lists.filters import NetCallsForm, NetValueForm
from helmdash.pages.parts.net_value import PART_WORDS
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries.evidence.net_value import (
    MOST_READ,
    calls_beside,
    calls_beside_one,
    net_report,
)

# What a person reads; ?rows=all has all that were read, 400 at most.
_SHOWN = 50


@require_safe
def net_value_page(request: PageRequest) -> HttpResponse:
    """The newest Trims, clears and compactions of a range, and what they came to."""
    request.now = timezone.now()
    form = NetValueForm(request.GET, now=request.now, zone=reader_zone(request))
    context: dict[str, object] = {"form": form, "most": MOST_READ, "shown": _SHOWN}
    context |= {"net_query": asked(request.GET), "part_words": PART_WORDS}
    if form.is_valid():
        context["report"] = net_report(
            project_id=scope.current_project(request).id,
            limit=None if form.has_all_rows else _SHOWN,
            **form.filters(),
        )
    return show(
        request,
        "pages/net_value.html",
        context,
        fragment="pages/_net_value.html",
        status=200 if form.is_valid() else 400,
    )


# Of all that are added up there may be some thousands.
_MOST_CALLS = 500


@require_safe
def net_calls_page(request: PageRequest) -> HttpResponse:
    """The calls before or after shortened prompts, as their shares of clean ones count them."""
    request.now = timezone.now()
    form = NetCallsForm(request.GET, now=request.now, zone=reader_zone(request))
    context: dict[str, object] = {"form": form, "net_query": asked(request.GET)}
    if form.is_valid():
        project_id, one = scope.current_project(request).id, form.of_one
        context["calls"], context["count"] = (
            calls_beside(project_id=project_id, limit=_MOST_CALLS, **form.of_side, **form.filters())
            if one is None
            else calls_beside_one(project_id=project_id, **form.of_side, **one)
        )
        context |= {"one": one, **form.of_side}
    status = 200 if form.is_valid() else 400
    return show(request, "pages/net_calls.html", context, status=status)


def asked(given: QueryDict) -> dict[str, str]:
    """What of an address says which shortened prompts are added up."""
    names = ("range", "since", "until", "model", "kind", "part", "newest")
    return {name: str(given[name]) for name in names if given.get(name)}
