"""What lists show of an item beside them: enough to judge it, and the way to its page."""

from __future__ import annotations

from typing import TypeVar

from django.urls import reverse
from django.utils.http import urlencode

from helmdash.pages import scope
from helmdash.pages.beside import Opened
from helmdash.pages.lists.filters import TimeForm
from helmdash.pages.lists.list_forms import (
    CallFilterForm,
    ConversationFilterForm,
    PlanFilterForm,
    TrimFilterForm,
)
from helmdash.pages.parts.charts import composition
from helmdash.pages.parts.plans import parts_of
from helmdash.pages.render import PageRequest
from helmdash.pages.zones import reader_zone
from helmdash.queries import plans, triage
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import conversations, listing
from helmdash.queries.conversations.curve import call_before
from helmdash.queries.fitting import fitting, trims
from helmdash.queries.lists.paging import Neighbours

_Form = TypeVar("_Form", bound=TimeForm)
# The newest calls of a conversation; its page has more.
_CALLS_SHOWN = 8


def call(request: PageRequest, name: str) -> Opened | None:
    """A call: its figures, why it failed, what fills its prompt."""
    project_id = scope.current_project(request).id
    detail = calls.find(project_id=project_id, call_id=name)
    if detail is None:
        return None
    found = detail.call
    before = call_before(project_id=project_id, call=found)
    form = _form(CallFilterForm, request)
    return Opened(
        noun="call",
        page=reverse("call", args=[found.id]),
        compared=_compared("calls", name),
        template="pages/_panel_call.html",
        values={
            "detail": detail,
            "call": found,
            "fills": composition.fill_rows(found.composition, found.sent.images, *before),
        },
        neighbours=call_listing.neighbours(
            project_id=project_id,
            filters=form.filters(),
            call_id=name,
            sort=form.cleaned_data["sort"],
        )
        if form.is_valid()
        else Neighbours(),
    )


def conversation(request: PageRequest, name: str) -> Opened | None:
    """A conversation: how full it is and why somebody should look, and its newest calls."""
    project_id = scope.current_project(request).id
    found = conversations.find(project_id=project_id, conversation_id=name)
    if found is None:
        return None
    form = _form(ConversationFilterForm, request)
    return Opened(
        noun="conversation",
        page=reverse("conversation", args=[name]),
        template="pages/_panel_conversation.html",
        values={
            "conversation": found.conversation,
            "triage": triage.triage_of(project_id=project_id, conversation=name),
            "calls": call_listing.page(
                project_id=project_id,
                filters=CallFilters(conversation=name),
                limit=_CALLS_SHOWN,
            ),
        },
        neighbours=listing.neighbours(
            project_id=project_id,
            filters=form.filters(),
            conversation_id=name,
            sort=form.cleaned_data["sort"],
        )
        if form.is_valid()
        else Neighbours(),
    )


def plan(request: PageRequest, name: str) -> Opened | None:
    """A plan: its steps, its outcome, its calls."""
    project_id = scope.current_project(request).id
    detail = plans.find(project_id=project_id, plan_id=name, now=request.now)
    if detail is None:
        return None
    form = _form(PlanFilterForm, request)
    return Opened(
        noun=detail.item.kind,
        page=reverse("plan", args=[name]),
        compared=_compared("plans", name),
        template="pages/_panel_plan.html",
        values={
            "detail": detail,
            "plan": detail.item,
            "parts": parts_of(detail.result, detail.steps),
        },
        neighbours=plans.neighbours(
            project_id=project_id,
            now=request.now,
            plan_id=name,
            sort=form.cleaned_data["sort"],
            **form.filters(),
        )
        if form.is_valid()
        else Neighbours(),
    )


def fit(request: PageRequest, name: str) -> Opened | None:
    """A fit: its sizes, its steps, what went."""
    project_id = scope.current_project(request).id
    found = fitting.find(project_id=project_id, fit_id=name)
    if found is None:
        return None
    form = _form(TrimFilterForm, request)
    return Opened(
        noun="fit",
        page=reverse("trim", args=[name]),
        compared=reverse("compare-trim", args=[name]),
        template="pages/_panel_trim.html",
        values={"fit": found},
        neighbours=trims.neighbours(
            project_id=project_id,
            filters=form.filters(),
            fit_id=name,
            sort=form.cleaned_data["sort"],
        )
        if form.is_valid()
        else Neighbours(),
    )


def _form(kind: type[_Form], request: PageRequest) -> _Form:
    return kind(request.GET, now=request.now, zone=reader_zone(request))


def _compared(kind: str, name: str) -> str:
    return f"{reverse(f'compare-{kind}')}?{urlencode({'b': name})}"
