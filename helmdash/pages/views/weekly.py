"""The weekly report: as a page, and as Markdown."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from helmdash import conf
from helmdash.operations import weekly_mail
from helmdash.pages import scope
from helmdash.pages.guards import post_only
from helmdash.pages.parts.budgets.suggestions import shown
from helmdash.pages.parts.weekly import markdown, parts
from helmdash.pages.render import PageRequest, show
from helmdash.queries.weekly import weekly_report

# Far enough from where dates end.
_FIRST_DAY = date(2000, 1, 1)


@require_safe
def weekly_page(request: PageRequest) -> HttpResponse:
    """The seven days of UTC to ?to=2026-11-22; without it to today, as far as it is."""
    project = scope.current_project(request)
    today = timezone.now().astimezone(UTC).date()
    last = _last_day(request, today)
    report = weekly_report(project_id=project.id, until=_end_of(last))
    week = timedelta(days=7)
    context = {
        "report": report,
        "mailed": weekly_mail.subscription(user_id=request.user.pk, project_id=project.id),
        "why_no_mail": weekly_mail.why_not(request.user.email),
        "waiting": [shown(each) for each in report.waiting],
        "decided": [shown(each) for each in report.decided],
        "is_today": last == today,
        "to_before": last - week,
        "to_after": min(last + week, today) if last < today else None,
        "range": _range(report.since, report.until),
        "net_query": {"range": _range(report.since, report.until)},
        "before": _range(report.since - (report.until - report.since), report.since),
    }
    return show(request, "pages/weekly.html", context)


@post_only("weekly")
def subscribe(request: PageRequest) -> HttpResponse:
    """Begin or end the mails of the current project to oneself."""
    project_id, user = scope.current_project(request).id, request.user
    actor = scope.current_actor(request)
    if request.POST.get("do") == "stop":
        weekly_mail.unsubscribe(by=str(actor), user_id=user.pk, project_id=project_id)
        messages.success(request, "You get no more of them.")
        return HttpResponseRedirect(request.page)
    try:
        weekly_mail.subscribe(
            actor=actor,
            user_id=user.pk,
            email=user.email,
            project_id=project_id,
            now=timezone.now(),
        )
        messages.success(request, f"From next Monday on it goes to {user.email}.")
    except weekly_mail.CannotMail as error:
        messages.error(request, f"mail: {error}")
    return HttpResponseRedirect(request.page)


# Mail programs unsubscribe by a POST of their own (RFC 8058), without a page's token; the signed
# link is what lets them.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """Whoever has the mail ends it here. Nobody has to be signed in; only a POST does it."""
    if request.method == "POST":
        weekly_mail.stop(token)
    found = weekly_mail.find(token)
    status = 200 if found is not None else 410
    return render(request, "pages/weekly_stop.html", {"found": found}, status=status)


def _last_day(request: PageRequest, today: date) -> date:
    """?to=, or today. Raises Http404 for what is no day, or one to come."""
    text = request.GET.get("to", "")
    try:
        last = date.fromisoformat(text) if text else today
    except ValueError:
        last = date.max
    if not _FIRST_DAY <= last <= today:
        raise Http404("to: write a day such as 2026-11-22, not after today")
    return last


def _end_of(day: date) -> datetime:
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC)


def _range(since: datetime, until: datetime) -> str:
    return f"{since:%Y-%m-%dT%H:%MZ}..{until:%Y-%m-%dT%H:%MZ}"


@require_safe
def weekly_file(request: PageRequest) -> HttpResponse:
    """The same to copy somewhere."""
    project = scope.current_project(request)
    last = _last_day(request, timezone.now().astimezone(UTC).date())
    report = weekly_report(project_id=project.id, until=_end_of(last))
    # Where nobody said how people reach this server, as whoever asks has reached it.
    base = conf.env().public_url.rstrip("/") or request.build_absolute_uri("/").rstrip("/")
    told = markdown(parts(report, slug=project.slug), report, project=project.name, base=base)
    response = HttpResponse(told, content_type="text/markdown; charset=utf-8")
    name = f"{project.slug}-{report.since:%Y-%m-%d}.md"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
