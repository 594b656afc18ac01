"""What a view checks before it does anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse

from helmdash.pages.render import PageRequest

Arguments = ParamSpec("Arguments")
View = Callable[Concatenate[PageRequest, Arguments], HttpResponse]


def staff_only(view: View[Arguments]) -> View[Arguments]:
    """Keys and demo data are the business of staff; others get a 403 that says so."""

    @wraps(view)
    def checked(
        request: PageRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponse:
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may do this. Ask somebody who can open the admin.")
        return view(request, *args, **kwargs)

    return checked


def require_storable(name: str) -> None:
    """An id with a NUL in it was never stored, and PostgreSQL does not take it as a question."""
    if "\x00" in name:
        raise Http404("there is nothing by this id")
