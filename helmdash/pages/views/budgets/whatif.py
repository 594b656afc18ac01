"""What-ifs: edits of budgets that are tried on recorded calls and fits."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right, require
from helmdash.core.whatif.edits import BadEdits
from helmdash.operations.budgets.editing import BudgetProblems, NoSuchBudget
from helmdash.operations.whatif import asking
from helmdash.operations.whatif.asking import BadWhatIf, NoSuchWhatIf, WhatIfConflict
from helmdash.operations.whatif.running import MOST_CALLS, MOST_FITS
from helmdash.pages import scope
from helmdash.pages.forms.whatif_form import DEFAULT_RANGE, Line, lines_of, read_form, with_blanks
from helmdash.pages.guards import post_only, require_storable
from helmdash.pages.parts.budgets.whatif import (
    STATE_WORDS,
    WHY_NOT,
    field_words,
    figure_words,
    items_address,
    model_words,
    names_of_figures,
    shown,
)
from helmdash.pages.render import PageRequest, etag, show, unless_known
from helmdash.pages.zones import reader_zone
from helmdash.queries.budgets import budgets
from helmdash.queries.evidence import suggestions
from helmdash.queries.lists.paging import BadCursor
from helmdash.queries.whatif import items, what_ifs
from helmdash.queries.whatif.what_ifs import WhatIfView

_MOST_KEYS = 1000
_ITEMS = 50


def what_if_list(request: PageRequest) -> HttpResponse:
    """Those that were asked, and the form of a new one; its answer leads to the new one's page."""
    scoped = scope.read(request)
    if request.method != "POST":
        return _form(request, with_blanks(_lines_to_begin_with(request)))
    require(scoped.actor, Right.FIT, project_id=scoped.project.id)
    asked = read_form(request.POST, now=timezone.now(), zone=reader_zone(request))
    problems = list(asked.problems)
    if request.POST.get("do") == "more":
        return _form(request, with_blanks(asked.lines, more=3), request.POST)
    if asked.edits is not None:
        try:
            found = asking.ask(
                actor=scoped.actor,
                project_id=scoped.project.id,
                edits=asked.edits,
                title=asked.title,
                since=asked.since,
                until=asked.until,
                is_whole=asked.is_whole,
                now=timezone.now(),
            )
        except BadEdits as error:
            problems += [each.message for each in error.errors]
        except (BadWhatIf, WhatIfConflict) as error:
            problems.append(str(error))
        else:
            return HttpResponseRedirect(_address(request, found.id))
    return _form(request, with_blanks(asked.lines), request.POST, problems, status=422)


@require_safe
def what_if_page(request: PageRequest, name: str) -> HttpResponse:
    """One of them, live while it runs; with ?beside= next to another."""
    found = _find(request, name)
    other, problem = request.GET.get("beside", "").strip(), ""
    beside = _beside(request, other) if other else None
    if other and beside is None:
        problem = f"beside: there is no what-if {other} in this project"
    request.now = timezone.now()
    request.etag = etag(
        request.get_full_path(),
        repr((found.state, found.progress, found.totals, beside and beside.totals)),
    )
    context = {
        "found": shown(found, beside),
        "beside": beside,
        "others": _others(request, name),
        "problem": problem,
        "most_calls": MOST_CALLS,
        "most_fits": MOST_FITS,
        "fields": {each: field_words(each) for edit in found.edits for each in _fields(edit)},
    }
    return unless_known(
        request,
        lambda: show(
            request,
            "pages/what_if.html",
            context,
            fragment="pages/_what_if.html",
            status=404 if problem else 200,
        ),
    )


@require_safe
def item_list(request: PageRequest, name: str) -> HttpResponse:
    """The calls or fits that a figure counts."""
    require_storable(name)
    row = what_ifs.find_row(project_id=scope.current_project(request).id, name=name)
    if row is None:
        raise Http404(f"There is no what-if {name}.")
    figure, model = request.GET.get("figure", "calls"), request.GET.get("model", "")
    try:
        found = items.items_of(
            row, figure, model=model, cursor=request.GET.get("cursor") or None, limit=_ITEMS
        )
    except items.UnknownFigure as error:
        raise Http404(f"figure: {error}") from None
    except items.NotByModel as error:
        raise Http404(f"model: {error}") from None
    except BadCursor:
        return HttpResponseRedirect(items_address(name, figure, model))
    context = {
        "told": what_ifs.view_of(row),
        "words": figure_words(figure),
        "model": model_words(model),
        "has_costs": figure.startswith("priced:"),
        "page": found,
        "is_fits": figure in items.FIT_FIGURES,
        "why_not": WHY_NOT,
    }
    return show(request, "pages/what_if_items.html", context)


@post_only("what-if")
def act(request: PageRequest, name: str) -> HttpResponse:
    """End it, or make its edits."""
    scoped = scope.read(request)
    given: dict[str, Any] = {
        "actor": scoped.actor,
        "project_id": scoped.project.id,
        "name": name,
        "now": timezone.now(),
    }
    require_storable(name)
    try:
        if request.POST.get("do") == "apply":
            asking.apply(**given)
            messages.success(request, "Applied: the rows of this project have these figures now.")
        else:
            asking.cancel(**given)
            messages.success(request, "It ends; what it has counted stays.")
    except NoSuchWhatIf as error:
        raise Http404(str(error)) from None
    except (WhatIfConflict, NoSuchBudget) as error:
        messages.error(request, str(error))
    except BudgetProblems as error:
        told = "; ".join(each.message for each in error.errors)
        messages.error(request, f"The budgets cannot be edited so: {told}")
    except BadEdits as error:
        messages.error(request, f"The budgets cannot be edited so: {error}")
    return HttpResponseRedirect(_address(request, name))


def _form(
    request: PageRequest,
    lines: tuple[Line, ...],
    typed: Any = None,
    problems: list[str] | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    project = scope.current_project(request)
    page = what_ifs.page(project_id=project.id)
    given = typed if typed is not None else request.GET
    context = {
        "lines": lines,
        "figures": names_of_figures(),
        "keys": sorted(
            {
                row.budget.key
                for row in budgets.page(project_id=project.id, limit=_MOST_KEYS).items
                if row.budget.key
            }
        ),
        "title": given.get("title", ""),
        "range": given.get("range", "") or DEFAULT_RANGE,
        "problems": problems or [],
        "page": page,
        "states": STATE_WORDS,
    }
    return show(request, "pages/what_ifs.html", context, status=status)


def _lines_to_begin_with(request: PageRequest) -> tuple[Line, ...]:
    """What led here: a suggestion, another what-if, or a row (?key=) with figures (?set=name=)."""
    project = scope.current_project(request)
    number = request.GET.get("suggestion", "")
    if number.isdecimal() and len(number) < 19:
        found = suggestions.find(project_id=project.id, suggestion_id=int(number))
        if found is not None:
            key = budgets.table(project_id=project.id).key_to_edit(found.model)
            changes = {each.field: each.suggested for each in found.changes}
            return lines_of([{"key": key, "changes": changes}])
    name = request.GET.get("like", "")
    if name and "\x00" not in name:
        like = what_ifs.find(project_id=project.id, name=name)
        if like is not None:
            return lines_of([_plain(each) for each in like.edits])
    model = request.GET.get("model", "").strip()[:255]
    if "model" in request.GET and "\x00" not in model:
        key = budgets.table(project_id=project.id).key_to_edit(model)
        asked = [(figure, request.GET.get(figure, "")) for figure, _ in names_of_figures()]
        typed = tuple(Line(key, figure, value[:255]) for figure, value in asked if value)
        return typed or (Line(key, "input_tokens"),)
    return ()


def _plain(edit: what_ifs.WhatIfEdit) -> dict[str, Any]:
    return {"key": edit.key, "changes": {each.field: each.edited for each in edit.changes}}


def _fields(edit: what_ifs.WhatIfEdit) -> list[str]:
    return [each.field for each in edit.changes]


def _find(request: PageRequest, name: str) -> WhatIfView:
    require_storable(name)
    found = what_ifs.find(project_id=scope.current_project(request).id, name=name)
    if found is None:
        raise Http404(f"There is no what-if {name}.")
    return found


def _beside(request: PageRequest, name: str) -> WhatIfView | None:
    if "\x00" in name:
        return None
    return what_ifs.find(project_id=scope.current_project(request).id, name=name)


def _others(request: PageRequest, name: str) -> list[WhatIfView]:
    """Those to lay beside it."""
    page = what_ifs.page(project_id=scope.current_project(request).id)
    return [each for each in page.items if each.id != name]


def _address(request: PageRequest, name: str) -> str:
    slug = scope.read(request).project.slug
    return f"{reverse('what-if', args=[name])}?project={slug}"
