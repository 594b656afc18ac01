"""What a view checks before it does anything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from helmdash.core.access.permissions import Forbidden, Right, require
from helmdash.pages import scope
from helmdash.pages.render import PageRequest

Arguments = ParamSpec("Arguments")
View = Callable[Concatenate[PageRequest, Arguments], HttpResponse]


def takes(right: Right) -> Callable[[View[Arguments]], View[Arguments]]:
    """Forbidden before anything is read of the form, for whoever lacks a right in the project.

    The operations ask again by themselves; this only spares them the rest of the view.
    """

    def decorate(view: View[Arguments]) -> View[Arguments]:
        @wraps(view)
        def checked(
            request: PageRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> HttpResponse:
            scoped = scope.read(request)
            require(scoped.actor, right, project_id=scoped.project.id)
            return view(request, *args, **kwargs)

        return checked

    return decorate


def post_only(page: str) -> Callable[[View[Arguments]], View[Arguments]]:
    """Only forms come here; who reloads or follows such an address is led to its page."""

    def decorate(view: View[Arguments]) -> View[Arguments]:
        @wraps(view)
        def checked(
            request: PageRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
        ) -> HttpResponse:
            request.page = reverse(page, args=args, kwargs=kwargs)
            if request.method in ("GET", "HEAD"):
                return HttpResponseRedirect(request.page)
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            # Its faults are told on the page of the same project, whatever another tab chose. Who
            # may not go there learns it from the view; forms about an account are for everybody.
            if scope.FORM_FIELD in request.POST:
                with suppress(Forbidden, scope.ProjectGone):
                    scope.read(request)
            return view(request, *args, **kwargs)

        return checked

    return decorate


def require_storable(name: str) -> None:
    """Raises Http404 for an id with a NUL: none was ever stored, and PostgreSQL refuses the
    question."""
    if "\x00" in name:
        raise Http404("there is nothing by this id")
