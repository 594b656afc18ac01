"""The audit log: who changed what in the project, when, from where."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right
from helmdash.pages import scope
from helmdash.pages.guards import takes
from helmdash.pages.lists.filters import AuditForm
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries.access import audit
from helmdash.queries.lists.paging import BadCursor


@require_safe
@takes(Right.READ_AUDIT)
def audit_page(request: PageRequest) -> HttpResponse:
    """Changes, newest first, in pages; or the fragment of their list."""
    request.now = timezone.now()
    scoped = scope.read(request)
    form = AuditForm(request.GET, now=request.now, zone=reader_zone(request))
    context: dict[str, object] = {"form": form}
    if form.is_valid():
        try:
            context["page"] = audit.page(
                actor=scoped.actor,
                project_id=scoped.project.id,
                filters=form.filters(),
                cursor=request.GET.get("cursor"),
            )
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
    return show(
        request,
        "pages/audit.html",
        context,
        fragment="pages/_audit.html",
        status=200 if "page" in context else 400,
    )
