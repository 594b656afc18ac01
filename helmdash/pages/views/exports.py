"""What a list shows, as a file of any size: all that fits its filters, not only one page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.doors.streaming import stream
from helmdash.pages import scope
from helmdash.pages.filters import (
    CallFilterForm,
    ConversationFilterForm,
    PlanFilterForm,
    TrimFilterForm,
)
from helmdash.pages.parts.list_files import KINDS
from helmdash.pages.render import PageRequest
from helmdash.pages.zones import reader_zone
from helmdash.queries import calls, exports, trims

# Of each list: its form, and all items that fit it.
_LISTS: Final[Mapping[str, tuple[Any, Callable[[int, Any, datetime], Iterator[object]]]]] = {
    "calls": (
        CallFilterForm,
        lambda project_id, form, _: calls.export(project_id=project_id, filters=form.filters()),
    ),
    "conversations": (
        ConversationFilterForm,
        lambda project_id, form, _: exports.conversations(
            project_id=project_id, filters=form.filters()
        ),
    ),
    "plans": (
        PlanFilterForm,
        lambda project_id, form, now: exports.plans(
            project_id=project_id, now=now, **form.filters()
        ),
    ),
    "trims": (
        TrimFilterForm,
        lambda project_id, form, _: trims.export(project_id=project_id, filters=form.filters()),
    ),
}


@require_safe
def export_list(request: PageRequest, noun: str, kind: str) -> HttpResponseBase:
    """A list as CSV or NDJSON, oldest first. Where its filters cannot be used, the list says why.

    Raises Http404 for a list or a kind of file that there is none of.
    """
    if noun not in _LISTS or kind not in KINDS:
        raise Http404(f"There is no {noun}.{kind}: lists are {', '.join(_LISTS)}.")
    project, now = scope.current_project(request), timezone.now()
    make_form, items = _LISTS[noun]
    form = make_form(request.GET, now=now, zone=reader_zone(request))
    if not form.is_valid():
        return HttpResponseRedirect(f"{reverse(noun)}?{request.GET.urlencode()}")
    content_type, write = KINDS[kind]
    response = stream(request, write(noun, items(project.id, form, now)), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{project.slug}-{noun}.{kind}"'
    response["Cache-Control"] = "no-store"
    return response
