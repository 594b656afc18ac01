"""All edits of budgets in a week: who, when, from what to what, why; and taking them back."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right, may
from helmdash.operations.budgets.editing import BudgetProblems, NoSuchBudget
from helmdash.operations.budgets.reverting import NoSuchEdit, revert_edits
from helmdash.pages import scope
from helmdash.pages.guards import post_only, takes
from helmdash.pages.parts.budgets.budget_edits import shown_edits
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries.budgets import budget_edits
from helmdash.queries.budgets.budget_edits import EditList

_WEEK: Final = re.compile(r"(\d{4})-W(\d{1,2})", re.ASCII)
# As many as are edited at once.
_MOST_ONLY: Final = 100


@require_safe
def edits_page(request: PageRequest) -> HttpResponse:
    """The edits of ?week=2026-W47, of the reader's zone; without it of this week. With ?only=
    single ones, by number."""
    project = scope.current_project(request)
    only = _numbers(request.GET.getlist("only"))
    zone = reader_zone(request)
    now = timezone.now()
    monday = _monday(request.GET.get("week", ""), now, zone)
    context: dict[str, object] = {"only": only}
    if only:
        items = budget_edits.edits_by_number(project_id=project.id, numbers=only)
        if not items:
            raise Http404("only: there is no such edit of a budget in this project")
        found = EditList(items=items, more=0, shipped=0)
    else:
        since, until = (_midnight(day, zone) for day in (monday, monday + timedelta(days=7)))
        found = budget_edits.edits_between(project_id=project.id, since=since, until=until)
        is_now = since <= now < until
        context |= {"since": since, "until": until - timedelta(days=1)}
        context |= {"before": _name(monday - timedelta(days=7)), "week": _name(monday)}
        context["after"] = "" if is_now else _name(monday + timedelta(days=7))
    actor = scope.current_actor(request)
    context["edits"] = found
    context["shown"] = shown_edits(
        found.items,
        may_revert=lambda owner: may(actor, Right.CHANGE_BUDGETS, project_id=owner),
    )
    return show(request, "pages/budget_edits.html", context)


@post_only("budget-edits")
@takes(Right.CHANGE_BUDGETS)
def revert(request: PageRequest) -> HttpResponse:
    """Take the edit of `one` back, or those of `edit`, all of them or none."""
    scoped = scope.read(request)
    numbers = _numbers(request.POST.getlist("one") or request.POST.getlist("edit"))
    if not numbers:
        messages.error(request, "edit: choose at least one edit to take back")
        return HttpResponseRedirect(request.page)
    try:
        count = revert_edits(actor=scoped.actor, project_id=scoped.project.id, numbers=numbers)
    except NoSuchEdit as error:
        raise Http404(str(error)) from None
    except NoSuchBudget as error:
        messages.error(request, f"Nothing was reverted: {error}")
    except BudgetProblems as error:
        told = " ".join(each.message for each in error.errors)
        messages.error(request, f"Nothing was reverted. {told}")
    else:
        said = "1 edit" if count == 1 else f"{count} edits"
        messages.success(request, f"Reverted {said}. It holds from the next call on.")
    return HttpResponseRedirect(request.page)


def _numbers(texts: list[str]) -> list[int]:
    """Raises Http404 for what is no number of an edit."""
    if len(texts) > _MOST_ONLY or not all(
        each.isascii() and each.isdigit() and len(each) < 19 for each in texts
    ):
        raise Http404(f"numbers of edits, {_MOST_ONLY} at most")
    return [int(each) for each in dict.fromkeys(texts)]


def _monday(text: str, now: datetime, zone: tzinfo) -> date:
    """The first day of a week such as 2026-W47; "" is this one. Raises Http404 for others."""
    if not text:
        today = now.astimezone(zone).date()
        return today - timedelta(days=today.weekday())
    found = _WEEK.fullmatch(text)
    try:
        year, week = (int(part) for part in found.groups()) if found else (0, 0)
        if not 2000 <= year <= 2999:  # far enough from where dates end
            raise ValueError
        return date.fromisocalendar(year, week, 1)
    except ValueError:
        raise Http404("week: write a week such as 2026-W47") from None


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone)


def _name(monday: date) -> str:
    year, week, _ = monday.isocalendar()
    return f"{year}-W{week:02}"
