"""Does trimming pay: sums of a range, and each shortened prompt with the calls it is from."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.filters import NetValueForm
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries.evidence.net_value import MOST_READ, net_report

# What a person reads; ?rows=all has all that were read, 400 at most.
_SHOWN = 50


@require_safe
def net_value_page(request: PageRequest) -> HttpResponse:
    """The newest Trims, clears and compactions of a range, and what they came to."""
    request.now = timezone.now()
    form = NetValueForm(request.GET, now=request.now, zone=reader_zone(request))
    context: dict[str, object] = {"form": form, "most": MOST_READ, "shown": _SHOWN}
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
