"""*Change budget*: the lines of a model, moved from the conversation or call where they are wrong.

A page of its own without scripts; with them it opens in the page that led here, and the curve
follows what is typed.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from helmdash.core.access.permissions import Right
from helmdash.operations.budgets.editing import BudgetProblems, NoSuchBudget
from helmdash.operations.budgets.lines import change_lines
from helmdash.pages import scope
from helmdash.pages.forms.forms import LinesForm
from helmdash.pages.guards import require_storable, takes
from helmdash.pages.parts.charts import charts
from helmdash.pages.render import PageRequest, show
from helmdash.queries import line_edits
from helmdash.queries.calls import calls
from helmdash.queries.conversations import conversations
from helmdash.queries.line_edits import Lines, Subject

# As the curve of a conversation has them.
_WIDTHS, _HEIGHT = ((940, "wide"), (380, "only-narrow")), 200


@takes(Right.CHANGE_BUDGETS)
def of_conversation(request: PageRequest, name: str) -> HttpResponse:
    """The lines of the model of a conversation's newest call."""
    require_storable(name)
    project = scope.current_project(request)
    found = conversations.standing(project_id=project.id, conversation_id=name)
    if found is None:
        return scope.elsewhere(request, "conversation", name)
    subject = line_edits.subject_of_conversation(found)
    return _answer(request, subject, found.id, reverse("conversation", args=[name]))


@takes(Right.CHANGE_BUDGETS)
def of_call(request: PageRequest, name: str) -> HttpResponse:
    """The lines of a call's model."""
    require_storable(name)
    project = scope.current_project(request)
    detail = calls.find(project_id=project.id, call_id=name)
    if detail is None:
        return scope.elsewhere(request, "call", name)
    subject = line_edits.subject_of_call(detail.call)
    return _answer(request, subject, detail.call.conversation, reverse("call", args=[name]))


def _answer(
    request: PageRequest, subject: Subject, conversation: str | None, back: str
) -> HttpResponse:
    project = scope.current_project(request)
    stands = line_edits.lines_of_row(project_id=project.id, subject=subject)
    is_sent = request.method == "POST"
    form = LinesForm(request.POST if is_sent else LinesForm.values_of(stands))
    lines = form.lines() if form.is_valid() else stands
    if is_sent and form.is_valid() and request.POST.get("do") == "save":
        try:
            change_lines(
                actor=scope.current_actor(request), project=project, subject=subject, lines=lines
            )
        except BudgetProblems as error:
            form.tell((each.field, each.message) for each in error.errors)
        except NoSuchBudget:
            form.add_error(None, "Somebody deleted this budget meanwhile; look again.")
        else:
            messages.success(request, f"Saved the lines of {subject.model} for this project.")
            return HttpResponseRedirect(back)
    return _panel(request, subject, conversation, back, form, lines)


def _panel(
    request: PageRequest,
    subject: Subject,
    conversation: str | None,
    back: str,
    form: LinesForm,
    lines: Lines,
) -> HttpResponse:
    project = scope.current_project(request)
    edit = line_edits.try_lines(project_id=project.id, subject=subject, lines=lines)
    form.tell(edit.problems)
    points = line_edits.points_of(project_id=project.id, conversation=conversation)
    moved = line_edits.rejudged(points, subject, edit.after)
    context = {
        "form": form,
        "edit": edit,
        "subject": subject,
        "back": back,
        "charts": tuple(
            (charts.curve(moved, width=width, height=_HEIGHT), where) for width, where in _WIDTHS
        ),
        "level": line_edits.level_by(subject, edit.after),
        "most": line_edits.MOST_CALLS,
    }
    # A preview that finds something wrong is an answer like any other to the script.
    status = 200 if request.htmx or not form.errors else 422
    return show(
        request,
        "pages/budget_lines.html",
        context,
        fragment="pages/_budget_lines.html",
        status=status,
    )
