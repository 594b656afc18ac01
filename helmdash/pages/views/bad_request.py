"""What Django itself finds wrong with a request before any view is asked.

Almost always the host: a server that got a name, and was not told of it. Else what has too many
parts.
"""

from __future__ import annotations

from django.contrib.admin.exceptions import (
    DisallowedModelAdminLookup,
    DisallowedModelAdminToField,
)
from django.core.exceptions import DisallowedHost, DisallowedRedirect
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from helmdash.doors.problems import CONTENT_TYPE, Code, Problem, body_of
from helmdash.doors.too_many import too_many_of
from helmdash.doors.wanted import Wanted, wanted_of

_NAME_CHARS = 200
# Where it would have led to is a site of our own in any case.
_TOO_LONG = "What was sent is too long for the address that it leads to. Send less of it."
_UNREADABLE = "This request cannot be read."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: a page, or a problem for programs. Names the setting where the host is not known,
    and what there is too much of."""
    said = _sentence(request, exception)
    wanted = wanted_of(request.headers.get("Accept", "").encode())
    if request.path.startswith("/api/") or wanted is Wanted.JSON:
        problem = Problem(code=Code.MALFORMED, detail=said or _UNREADABLE)
        return HttpResponse(body_of(problem), status=400, content_type=CONTENT_TYPE)
    return HttpResponse(
        render_to_string("400.html", {"said": said, "request": request}), status=400
    )


def _sentence(request: HttpRequest, exception: Exception) -> str:
    match exception:
        case DisallowedHost():
            return _of_host(request)
        case DisallowedRedirect():
            return _TOO_LONG
        case DisallowedModelAdminLookup() | DisallowedModelAdminToField():
            # Django's sentence names the field.
            return f"{str(exception)[:_NAME_CHARS].rstrip('.')}."
        case _:
            return too_many_of(exception, request.META["QUERY_STRING"])


def _of_host(request: HttpRequest) -> str:
    host = request.META.get("HTTP_HOST", "")[:_NAME_CHARS]
    return (
        f"This server does not answer to the host {host!r}. "
        "Name it in HELMDASH_ALLOWED_HOSTS or HELMDASH_PUBLIC_URL."
    )
