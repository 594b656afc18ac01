"""Editing rows of the budget table: one in its place in the table, several on a page of their own.

What is typed is tried on the prompts of the last month before anything is saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from helmdash.core.access.permissions import Right, may
from helmdash.core.budgets.budgets import BudgetSpec
from helmdash.operations.budgets.rows import RowEdit, RowProblems, edit_rows
from helmdash.pages import scope
from helmdash.pages.forms.budget_forms import MOST_ROWS, RowForm, Sheet, sheet_of
from helmdash.pages.guards import takes
from helmdash.pages.parts.budgets.budget_rows import ShownEffect, shown_effects
from helmdash.pages.render import PageRequest, show
from helmdash.queries import preflight
from helmdash.queries.budgets import budget_use, budgets
from helmdash.queries.budgets.budgets import BudgetRow


@takes(Right.CHANGE_BUDGETS)
def edit_budgets(request: PageRequest) -> HttpResponse:
    """The rows of ?row=: their figures to edit, and what that would do."""
    is_sent = request.method == "POST"
    chosen = (request.POST if is_sent else request.GET).getlist("row")
    rows = _rows(request, chosen)
    if not rows:
        return show(request, "pages/edit_budgets.html", {}, status=422 if is_sent else 200)
    sheet = sheet_of(rows, request.POST if is_sent else None)
    is_valid = sheet.is_valid if is_sent else False
    if is_valid and request.POST.get("do") == "save":
        done = _save(request, sheet)
        if done is not None:
            return done
    return _show(request, sheet, is_tried=is_valid)


def _rows(request: PageRequest, chosen: Sequence[str]) -> list[BudgetRow]:
    """The rows in the order of the table. Raises Http404 where one is not there."""
    wanted = {int(each) for each in chosen if each.isascii() and each.isdigit() and len(each) < 19}
    if len(wanted) != len(set(chosen)) or len(wanted) > MOST_ROWS:
        raise Http404(f"row: numbers of budgets, {MOST_ROWS} at most")
    project = scope.current_project(request)
    found = budgets.some(project_id=project.id, numbers=wanted)
    if len(found) != len(wanted):
        raise Http404("row: there is no such budget in this project")
    return list(found)


def _save(request: PageRequest, sheet: Sheet) -> HttpResponse | None:
    """None: it cannot be stored so, and the forms say why."""
    edits = [
        RowEdit(
            budget_id=form.row.id,
            changes=form.changes(),
            seen_at=form.cleaned_data["seen_at"],
        )
        for form in sheet.rows
    ]
    try:
        numbers = edit_rows(
            actor=scope.current_actor(request),
            project_id=scope.current_project(request).id,
            edits=edits,
            why=sheet.why.cleaned_data["why"],
        )
    except RowProblems as error:
        for form in sheet.rows:
            found = error.errors.get(form.row.id, ())
            form.tell((each.field, each.message) for each in found)
        return None
    if not numbers:
        messages.success(request, "Nothing to save: the rows have these figures.")
        return HttpResponseRedirect(reverse("budgets"))
    rows = "1 row" if len(numbers) == 1 else f"{len(numbers)} rows"
    messages.success(request, f"Saved {rows}. It holds from the next call on.")
    for warning in _warnings(request, sheet):
        messages.warning(request, warning)
    only = "&".join(f"only={number}" for number in numbers)
    return HttpResponseRedirect(f"{reverse('budget-edits')}?{only}")


def _warnings(request: PageRequest, sheet: Sheet) -> tuple[str, ...]:
    """What the fallbacks that were just saved would not take of the conversations of now."""
    found = preflight.fallback_preflights(
        project_id=scope.current_project(request).id, now=timezone.now()
    )
    return preflight.warnings_of(found, [form.row.budget.key for form in sheet.rows])


def _show(request: PageRequest, sheet: Sheet, *, is_tried: bool) -> HttpResponse:
    project = scope.current_project(request)
    may_edit_all = may(scope.current_actor(request), Right.CHANGE_BUDGETS, project_id=None)
    effects: tuple[ShownEffect, ...] = ()
    if is_tried or request.method != "POST":
        pairs = [(form.row, _spec(form, project.id, may_edit_all, is_tried)) for form in sheet.rows]
        effects = shown_effects(
            budget_use.effects_of(project_id=project.id, now=timezone.now(), rows=pairs)
        )
        for form, effect in zip(sheet.rows, effects, strict=True):
            if is_tried:
                form.tell(effect.told.problems)
    is_wrong = request.method == "POST" and (
        not is_tried or any(form.errors for form in sheet.rows)
    )
    context = {
        "sheet": sheet,
        "effects": list(zip(sheet.rows, effects, strict=True)) if effects else (),
        "may_edit_all": may_edit_all,
        "days": budget_use.USE_DAYS,
        "is_one": len(sheet.rows) == 1,
        # Opened in its place in the table.
        "in_table": bool(request.htmx) and request.method != "POST",
    }
    # A preview that finds something wrong is an answer like any other to the script.
    status = 422 if is_wrong and not request.htmx else 200
    return show(
        request,
        "pages/edit_budgets.html",
        context,
        fragment="pages/_edit_budgets.html",
        status=status,
    )


def _spec(form: RowForm, project_id: int, may_edit_all: bool, is_tried: bool) -> BudgetSpec:
    if not is_tried:
        return form.row.budget
    return form.spec(project_id, is_own=form.row.project is not None or may_edit_all)
