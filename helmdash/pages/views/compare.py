"""Two of a kind beside each other: calls, plans, and a catalog before and after a Trim."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.guards import require_storable
from helmdash.pages.parts import comparison
from helmdash.pages.parts.charts import composition
from helmdash.pages.parts.plans import parts_of
from helmdash.pages.render import PageRequest, show
from helmdash.queries import plans
from helmdash.queries.calls import calls
from helmdash.queries.calls.calls import CallDetail
from helmdash.queries.conversations.curve import id_of_call_before
from helmdash.queries.fitting import fit_words, fitting
from helmdash.queries.plans import PlanView

_Found = TypeVar("_Found")
# What the address calls them, and what people do.
_PLACES = {"a": "First", "b": "Second"}


@require_safe
def compare_calls(request: PageRequest) -> HttpResponse:
    """Call `b` with call `a`; without `a`, the way to the pair with the call before."""
    project_id = scope.current_project(request).id

    def find(name: str) -> CallDetail | None:
        return calls.find(project_id=project_id, call_id=name)

    before, after, problems = _pair(request, "call", find)
    if after is not None and not request.GET.get("a"):
        earlier = id_of_call_before(project_id=project_id, call=after.call)
        if earlier is not None:
            query = urlencode({"a": earlier, "b": after.call.id})
            return HttpResponseRedirect(f"{reverse('compare-calls')}?{query}")
        problems = [f"First: no call goes before {after.call.id}; name another one"]
    context: dict[str, object] = {"problems": problems, "names": _names(request)}
    if before is not None and after is not None:
        old, new = before.call, after.call
        context |= {
            "before": old,
            "after": new,
            "figures": comparison.call_rows(old, new),
            "lines": comparison.line_rows(old, new),
            "fills": composition.fill_rows(
                new.composition, new.sent.images, old.composition, old.sent.images
            ),
            "messages": comparison.messages(before, after),
            "reply": comparison.reply(before, after),
        }
    return show(
        request, "pages/compare_calls.html", context, status=404 if _is_missing(problems) else 200
    )


@require_safe
def compare_plans(request: PageRequest) -> HttpResponse:
    """Plan `b` with plan `a`."""
    request.now = timezone.now()
    project_id = scope.current_project(request).id

    def find(name: str) -> PlanView | None:
        return plans.find(project_id=project_id, plan_id=name, now=request.now)

    before, after, problems = _pair(request, "plan", find)
    context: dict[str, object] = {"problems": problems, "names": _names(request)}
    if before is not None and after is not None:
        sides = [parts_of(each.result, each.steps).steps for each in (before, after)]
        context |= {
            "before": before.item,
            "after": after.item,
            "facts": comparison.plan_rows(before.item, after.item),
            "steps": comparison.steps(*sides),
            "is_same": comparison.is_same_intent(before, after),
        }
    return show(
        request, "pages/compare_plans.html", context, status=404 if _is_missing(problems) else 200
    )


@require_safe
def compare_trim(request: PageRequest, name: str) -> HttpResponse:
    """The words of a catalog before and after a fit."""
    require_storable(name)
    project_id = scope.current_project(request).id
    fit = fitting.find(project_id=project_id, fit_id=name)
    if fit is None:
        return scope.elsewhere(request, "fit", name)
    context = {"fit": fit, "words": fit_words.fit_words(project_id=project_id, fit=fit)}
    return show(request, "pages/compare_trim.html", context)


def _pair(
    request: PageRequest, noun: str, find: Callable[[str], _Found | None]
) -> tuple[_Found | None, _Found | None, list[str]]:
    """What `a` and `b` name, and a sentence for each that is not there."""
    found, problems = [], []
    for field, name in _names(request).items():
        one = find(name) if name and "\x00" not in name else None
        if name and one is None:
            problems.append(f"{_PLACES[field]}: there is no {noun} {name} in this project")
        found.append(one)
    return found[0], found[1], problems


def _names(request: PageRequest) -> dict[str, str]:
    return {field: request.GET.get(field, "").strip() for field in _PLACES}


def _is_missing(problems: list[str]) -> bool:
    return any("there is no" in problem for problem in problems)
