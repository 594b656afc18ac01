"""Budgets to read: every row with what it does, and which one governs a model."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.parts.budgets import figure_sources
from helmdash.pages.parts.budgets.budget_rows import shown_row
from helmdash.pages.parts.budgets.preflight import ROOM_WORDS
from helmdash.pages.parts.budgets.suggestions import shown, shown_limits
from helmdash.pages.render import PageRequest, show
from helmdash.queries import preflight
from helmdash.queries.budgets import budget_use, budgets
from helmdash.queries.budgets.published import published_fill
from helmdash.queries.evidence import limits, suggestions
from helmdash.queries.evidence.limits_after import limits_after

# More than one looks through; a row is 3.6 kB of the page.
_ROWS = 100
# The part of the page with the table.
_TABLE = "rules"
_ROWS_PAGE = "pages/_budget_rows.html"
# Of the number of a page.
_DIGITS = 10
# The longest model id the API takes.
_MODEL_CHARS = 255


@require_safe
def budget_list(request: PageRequest) -> HttpResponse:
    """All rules, and with ?model= the explanation of the one that governs it.

    ?key=: those with this in their key; ?page=: which hundred of them.
    """
    project = scope.current_project(request)
    if request.htmx and request.htmx.target == _TABLE:
        return show(request, _ROWS_PAGE, _table(_table_use(request)), fragment=_ROWS_PAGE)
    model = request.GET.get("model", "").strip()
    problem = _problem(request, model)
    context: dict[str, object] = {"model": model, "problem": problem}
    if not request.htmx:
        use = _table_use(request)
        context |= _table(use)
        inbox = suggestions.inbox(project_id=project.id)
        context["preflights"] = preflight.fallback_preflights(
            project_id=project.id, now=timezone.now()
        )
        context["rooms"] = ROOM_WORDS
        after = limits_after(project_id=project.id, found=inbox.waiting)
        context["waiting"] = [shown(each, after.get(each.id)) for each in inbox.waiting]
        context["decided"] = [shown(each) for each in inbox.decided]
        context["more"] = inbox.more
        context["published"] = published_fill(project_id=project.id, uses=use.models or ())
    if model and not problem:
        resolution = budgets.resolve(project_id=project.id, model=model)
        row = (
            budgets.find(project_id=project.id, budget_id=resolution.budget_id)
            if resolution.budget_id is not None
            else None
        )
        context["resolution"] = resolution
        context["fallback_preflights"] = [
            each
            for each in preflight.fallback_preflights(project_id=project.id, now=timezone.now())
            if each.source == resolution.matched_key and resolution.budget.fallback_model
        ]
        context["rooms"] = ROOM_WORDS
        learned = limits.limits_of_model(project_id=project.id, model=model, now=timezone.now())
        context["learned"], context["limits"] = learned, shown_limits(learned)
        context["figures"] = figure_sources.figures(resolution, row.budget if row else None)
    return show(
        request,
        "pages/budgets.html",
        context,
        fragment="pages/_resolution.html",
        status=400 if problem else 200,
    )


def _table_use(request: PageRequest) -> budget_use.TableUse:
    page = request.GET.get("page", "")
    return budget_use.table_use(
        project_id=scope.current_project(request).id,
        now=timezone.now(),
        key=request.GET.get("key", "").strip(),
        page=int(page) if page.isascii() and page.isdigit() and len(page) < _DIGITS else 1,
        limit=_ROWS,
    )


def _table(use: budget_use.TableUse) -> dict[str, object]:
    return {"rows": [shown_row(each) for each in use.rows], "use": use, "key": use.key}


def _problem(request: PageRequest, model: str) -> str:
    if len(model) > _MODEL_CHARS:
        return f"model: at most {_MODEL_CHARS} characters"
    if "\x00" in model:
        return "model: holds a character that no model id has"
    if "model" in request.GET and not model:
        return "model: write a model id such as openai/gpt-4o"
    return ""
