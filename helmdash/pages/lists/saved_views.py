"""Saved views above a list: which there are, which one is shown, and which the list opens with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from helmdash.pages import scope
from helmdash.pages.lists.lists import LISTS
from helmdash.pages.render import PageRequest
from helmdash.queries.lists.saved_views import SavedViewItem, first_view, views_of

View = Callable[[PageRequest], HttpResponse]
# An address with it shows all of a list, whatever the list opens with.
WHOLE = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTab:
    """One view above its list. is_current: the list shows it."""

    view: SavedViewItem
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTabs:
    """All of a list's. whole: the address of all of it; state: what a view saved now would keep."""

    tabs: tuple[ViewTab, ...]
    whole: str
    state: str

    @property
    def is_whole(self) -> bool:
        """Whether nothing narrows the list, nor changes its look."""
        return not self.state


def state_of(noun: str, query: QueryDict) -> str:
    """What an address says of a list, always in the same way: filters, range, order, columns,
    density. Neither the place in it, nor the project."""
    form = LISTS[noun].form
    names = sorted({*form.base_fields, "range", "since", "until"})
    kept = QueryDict(mutable=True)
    for name in names:
        values = [value for value in query.getlist(name) if value]
        if values:
            kept.setlist(name, values)
    return kept.urlencode()


def with_views(noun: str) -> Callable[[View], View]:
    """A list with its saved views; asked for without anything, it is the one that its reader
    chose to begin with."""

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: PageRequest) -> HttpResponse:
            if not request.htmx and not set(request.GET) - {scope.FORM_FIELD}:
                project = scope.current_project(request)
                first = first_view(project_id=project.id, user_id=request.user.pk, noun=noun)
                if first:
                    return HttpResponseRedirect(f"{reverse(noun)}?{first}")
            request.views = SimpleLazyObject(lambda: tabs_of(request, noun))
            return view(request)

        return answer

    return decorate


def tabs_of(request: PageRequest, noun: str) -> ViewTabs:
    """The views of a list as somebody sees them. One query."""
    project = scope.current_project(request)
    found = views_of(project_id=project.id, user_id=request.user.pk, noun=noun)
    state = state_of(noun, request.GET)
    page = reverse(noun)
    return ViewTabs(
        tabs=tuple(
            ViewTab(
                view=each,
                address=f"{page}?{each.address or f'{WHOLE}=all'}",
                is_current=bool(state) and each.address == state,
            )
            for each in found
        ),
        whole=f"{page}?{WHOLE}=all" if any(each.is_first for each in found) else page,
        state=state,
    )
