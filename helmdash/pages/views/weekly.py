"""The weekly report: as a page, and as Markdown."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.parts.suggestions import shown
from helmdash.pages.parts.weekly import markdown
from helmdash.pages.render import PageRequest, show
from helmdash.queries.weekly import weekly_report


@require_safe
def weekly_page(request: PageRequest) -> HttpResponse:
    """The seven days that ended at the last midnight."""
    report = weekly_report(project_id=scope.current_project(request).id, now=timezone.now())
    context = {
        "report": report,
        "waiting": [shown(each) for each in report.waiting],
        "decided": [shown(each) for each in report.decided],
        "range": _range(report.since, report.until),
        "before": _range(report.since - (report.until - report.since), report.since),
    }
    return show(request, "pages/weekly.html", context)


def _range(since: datetime, until: datetime) -> str:
    return f"{since:%Y-%m-%dT%H:%MZ}..{until:%Y-%m-%dT%H:%MZ}"


@require_safe
def weekly_file(request: PageRequest) -> HttpResponse:
    """The same to copy somewhere."""
    project = scope.current_project(request)
    report = weekly_report(project_id=project.id, now=timezone.now())
    response = HttpResponse(
        markdown(report, project=project.name), content_type="text/markdown; charset=utf-8"
    )
    name = f"{project.slug}-{report.since:%Y-%m-%d}.md"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
