"""What a list shows, as a file of any size: all that fits its filters, not only one page."""

from __future__ import annotations

from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.doors.streaming import stream
from helmdash.pages import scope
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.parts.lists.list_files import KINDS
from helmdash.pages.render import PageRequest
from helmdash.pages.zones import reader_zone


@require_safe
def export_list(request: PageRequest, noun: str, kind: str) -> HttpResponseBase:
    """A list as CSV or NDJSON: oldest first, or in the order that the address says. Where its
    filters cannot be used, the list says why.

    Raises Http404 for a list or a kind of file that there is none of.
    """
    if noun not in LISTS or kind not in KINDS:
        raise Http404(f"There is no {noun}.{kind}: lists are {', '.join(LISTS)}.")
    project, now = scope.current_project(request), timezone.now()
    listed = LISTS[noun]
    form = listed.form(request.GET, now=now, zone=reader_zone(request))
    if not form.is_valid():
        return HttpResponseRedirect(f"{reverse(noun)}?{request.GET.urlencode()}")
    content_type, write = KINDS[kind]
    items = listed.exported(project.id, form, now)
    response = stream(request, write(noun, items, form.chosen), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-{noun}.{kind}"'
    response["Cache-Control"] = "no-store"
    return response
