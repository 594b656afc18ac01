"""The page of a list's saved views, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.operations import saved_views
from helmdash.operations.saved_views import ViewError
from helmdash.pages import scope
from helmdash.pages.guards import post_only
from helmdash.pages.lists.lists import LISTS, ListKind
from helmdash.pages.lists.saved_views import state_of, tabs_of
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone

# No id has more digits than a database's.
_MOST_DIGITS: Final = 18


@require_safe
def view_page(request: PageRequest, noun: str) -> HttpResponse:
    """The views of a list, to be renamed, deleted, and chosen to begin with. Raises Http404."""
    kind = _kind(noun)
    return show(request, "pages/saved_views.html", {"kind": kind, "views": tabs_of(request, noun)})


@post_only("saved-views")
def change_views(request: PageRequest, noun: str) -> HttpResponse:
    """Save, rename, delete a view, or begin with it; on to where that is seen. Raises Http404."""
    kind = _kind(noun)
    act = _ACTS.get(request.POST.get("do", ""))
    if act is None:
        messages.error(request, f"do: send one of {', '.join(_ACTS)}")
        return HttpResponseRedirect(request.page)
    try:
        return HttpResponseRedirect(act(request, kind))
    except ViewError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(request.page)


def _save(request: PageRequest, kind: ListKind) -> str:
    address = state_of(kind.noun, QueryDict(request.POST.get("address", "").encode()))
    form = kind.form(QueryDict(address), now=timezone.now(), zone=reader_zone(request))
    if not form.is_valid():
        field, said = form.problems[0]
        raise ViewError("address", f"its {field} cannot be used: {said}")
    saved_views.save_view(
        **_who(request),
        noun=kind.noun,
        name=request.POST.get("name", ""),
        address=address,
        is_shared=bool(request.POST.get("shared")),
    )
    messages.success(request, f"Saved the view {request.POST.get('name', '').strip()}.")
    return f"{reverse(kind.noun)}?{address or 'view=all'}"


def _rename(request: PageRequest, kind: ListKind) -> str:
    saved_views.rename_view(
        **_who(request), noun=kind.noun, view_id=_id(request), name=request.POST.get("name", "")
    )
    messages.success(request, "Renamed the view.")
    return request.page


def _delete(request: PageRequest, kind: ListKind) -> str:
    saved_views.delete_view(**_who(request), noun=kind.noun, view_id=_id(request))
    messages.success(request, "Deleted the view.")
    return request.page


def _first(request: PageRequest, kind: ListKind) -> str:
    saved_views.set_first_view(**_who(request), noun=kind.noun, view_id=_id(request))
    messages.success(request, f"{kind.items.capitalize()} open with this view for you.")
    return request.page


def _whole(request: PageRequest, kind: ListKind) -> str:
    saved_views.set_first_view(**_who(request), noun=kind.noun, view_id=None)
    messages.success(request, f"{kind.items.capitalize()} open with all of them for you.")
    return request.page


_ACTS: Final[Mapping[str, Callable[[PageRequest, ListKind], str]]] = {
    "save": _save,
    "rename": _rename,
    "delete": _delete,
    "first": _first,
    "whole": _whole,
}


def _kind(noun: str) -> ListKind:
    kind = LISTS.get(noun)
    if kind is None:
        raise Http404(f"There is no list {noun}: lists are {', '.join(LISTS)}.")
    return kind


def _who(request: PageRequest) -> dict[str, Any]:
    return {
        "actor": scope.current_actor(request),
        "user_id": request.user.pk,
        "project_id": scope.current_project(request).id,
    }


def _id(request: PageRequest) -> int:
    text = request.POST.get("view", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise ViewError("view", "send the number of a view")
    return int(text)
