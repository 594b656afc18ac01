"""Conversations: the list, and one with its fill curve."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from helmdash.pages import charts, scope
from helmdash.pages.forms import ConversationFilterForm
from helmdash.pages.guards import require_storable
from helmdash.pages.render import PageRequest, live, show
from helmdash.queries import calls, conversations, seen
from helmdash.queries.calls import CallFilters
from helmdash.queries.paging import BadCursor

# The newest calls below the curve; the calls page has the rest.
_CALLS_SHOWN = 20
# The curve as a table; longer than this it is searched on the calls page.
_TABLE_ROWS = 100


@require_safe
@live
def conversation_list(request: PageRequest) -> HttpResponse:
    """Conversations, those that need somebody first."""
    project = scope.current_project(request)
    form = ConversationFilterForm(request.GET, now=request.now)
    context: dict[str, object] = {"form": form}
    if form.is_valid():
        try:
            context["page"] = conversations.page(
                project_id=project.id,
                filters=form.filters(),
                cursor=request.GET.get("cursor"),
                needs_me_first=form.cleaned_data["order"] != "newest",
            )
        except BadCursor:
            form.add_error(None, "cursor: this link does not lead anywhere; start at the top")
    if not request.htmx:
        context["models"] = seen.values(project_id=project.id, column="model")
    return show(
        request,
        "pages/conversations.html",
        context,
        fragment="pages/_conversations.html",
        status=200 if form.is_valid() else 400,
    )


@require_safe
@live
def conversation_page(request: PageRequest, name: str) -> HttpResponse:
    """One conversation: how it filled up, its rounds, its levels, its newest calls."""
    require_storable(name)
    project = scope.current_project(request)
    found = conversations.find(project_id=project.id, conversation_id=name)
    if found is None:
        return scope.elsewhere(request, "conversation", name)
    newest = calls.page(
        project_id=project.id, filters=CallFilters(conversation=name), limit=_CALLS_SHOWN
    )
    context = {
        "detail": found,
        "conversation": found.conversation,
        "curves": (
            (charts.curve(found.curve, width=940, height=270), "wide"),
            (charts.curve(found.curve, width=380, height=230), "only-narrow"),
        ),
        "table": found.curve[-_TABLE_ROWS:],
        "page": newest,
    }
    return show(request, "pages/conversation.html", context, fragment="pages/_conversation.html")
