"""How many conversations are critical: what a tab says in its title while another is looked at."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.render import PageRequest, address, etag, show, unless_known
from helmdash.queries import news


@require_safe
def reds(request: PageRequest) -> HttpResponse:
    """The number, for the script; nothing that is seen."""
    count = news.critical_count(project_id=scope.current_project(request).id)
    request.etag = etag(address(request), str(count))
    return unless_known(request, lambda: show(request, "pages/_reds.html", {"reds": count}))
