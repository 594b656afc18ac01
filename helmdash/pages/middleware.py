"""Who may see pages: signed-in people. Programs have their own door, the API.

Also what a form gets whose page was about a project that is gone by now.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlencode

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import MAX_URL_REDIRECT_LENGTH, url_has_allowed_host_and_scheme

from helmdash.core.access.origin import Origin, Way, coming_by, origin
from helmdash.core.access.permissions import Forbidden
from helmdash.doors.answers import title_of
from helmdash.doors.asgi import FAULT_KEY
from helmdash.doors.faults import Fault
from helmdash.doors.problems import CONTENT_TYPE, body_of, problem_of_fault
from helmdash.doors.wanted import Wanted, wanted_of
from helmdash.operations.access.sessions import note_seen
from helmdash.pages import scope
from helmdash.pages.parts.words import field_name
from helmdash.pages.render import show_fault

# The liveness checks are open, the API and the metrics ask for a key.
_OPEN_PATHS = frozenset(
    {"/healthz", "/readyz", "/metrics", "/favicon.ico", "/connect/helmdash.pyz"}
)
_OPEN_PREFIXES = ("/login/", "/static/", "/api/", "/alerts/seen/", "/weekly/stop/")
_WAYS = (("/admin/", Way.ADMIN), ("/api/", Way.API))
# The longest spelling of an IPv6 address.
_ADDRESS_CHARS = 45
# What Django leads to at most is as long; every sign of an address can become three.
_MOST_ADDRESS_CHARS = MAX_URL_REDIRECT_LENGTH
# Fields of a form that nobody typed.
_UNTYPED = frozenset(
    {"csrfmiddlewaretoken", scope.FORM_FIELD, "id", "do", "position", "updated_at"}
)


class CompressPagesMiddleware(GZipMiddleware):
    """Compresses what people read. What programs get stays as it is: a report is answered beside
    Django (api.fast) with the same headers, and an export is written as it is read."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)


class OriginMiddleware:
    """Around the views: what they change is noted with the address that asked for it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        way = next((way for start, way in _WAYS if request.path.startswith(start)), Way.PAGES)
        # The server's own door has put the client's address there, whatever proxies are in front.
        address = request.META.get("REMOTE_ADDR", "")[:_ADDRESS_CHARS]
        with coming_by(Origin(way, address or None)):
            return self._get_response(request)


class SignInRequiredMiddleware:
    """Sends everybody else to the sign-in page, and back to where they wanted to go after it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_open(request.path) or request.user.is_authenticated:
            return self._get_response(request)
        return lead_to_sign_in(request) or self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Say what is not allowed; and lose nothing of a form whose project is gone. None: another
        fault, which is not ours to tell."""
        if isinstance(exception, Forbidden):
            return show_fault(request, "403.html", {"exception": str(exception)}, status=403)
        if not isinstance(exception, scope.ProjectGone):
            return None
        typed = [
            (field_name(name), value)
            for name, values in request.POST.lists()
            if name not in _UNTYPED
            for value in values
            if value.strip()
        ]
        is_part = request.headers.get("HX-Request") == "true"
        context = {"slug": exception.slug, "typed": typed}
        if not is_part:
            return show_fault(request, "409.html", context, status=409)
        response = render(request, "pages/_project_gone.html", context, status=409)
        response["HX-Retarget"] = "#main"
        response["HX-Reswap"] = "innerHTML"
        response["Cache-Control"] = "no-store"
        return response


class MethodMiddleware:
    """Inside those that finish a page: who comes to an address the wrong way, such as by going back
    to one that took a form, reads so within the frame. Django's own answer is a blank page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or _is_open(request.path):
            return response
        allowed = response.headers.get("Allow", "")
        context = {"is_for_forms": "GET" not in allowed}
        page = show_fault(request, "405.html", context, status=response.status_code)
        page["Allow"] = allowed
        return page


class RefusedFormMiddleware:
    """Inside those that finish a page: a form that was not read, as it was too large or came too
    slowly, is told so within the frame. The door has left the reason in the request's scope."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        fault: Fault | None = getattr(request, "scope", {}).get(FAULT_KEY)
        if fault is None:
            return self._get_response(request)
        page = _refused(request, fault)
        # The rest of what is sent is nobody's request.
        page["Connection"] = "close"
        return page


class SessionsMiddleware:
    """Behind the answer: notes down when and where a session was used."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        # Whoever signs in is noted at once: nobody can use a session that is in no list.
        has_begun = _is_open(request.path) and request.session.modified
        # Else, where nobody has to be signed in, nobody is looked up: /healthz asks no database.
        if _is_open(request.path) and not has_begun:
            return response
        # What a page polls says nothing of its reader.
        is_seen = has_begun or "HX-Request" not in request.headers
        if is_seen and request.user.is_authenticated:
            # The page is read already; a database that goes away now takes nothing from it.
            with suppress(DatabaseError):
                if request.session.session_key is None:
                    request.session.save()  # one that took the place of somebody else's
                note_seen(
                    user_id=request.user.pk,
                    session_key=request.session.session_key or "",
                    user_agent=request.headers.get("User-Agent", ""),
                    address=origin().address,
                    now=timezone.now(),
                )
        return response


def lead_to_sign_in(request: HttpRequest) -> HttpResponse | None:
    """The answer for somebody who is not signed in; None where nobody has to be."""
    if _is_open(request.path):
        return None
    if request.headers.get("HX-Request") == "true":
        # A redirect would put the sign-in page into the middle of another page.
        response = HttpResponse(status=204)
        response["HX-Redirect"] = _sign_in(_page_of(request))
        return response
    return HttpResponseRedirect(_sign_in(request.get_full_path()))


def _refused(request: HttpRequest, fault: Fault) -> HttpResponse:
    """What is said of a form that was not read: to a script, above the form, which stays."""
    told = {"status": fault.status, "title": title_of(fault.status), "said": str(fault)}
    if request.headers.get("HX-Request") == "true":
        page = render(request, "pages/_refused.html", told, status=fault.status)
        page["HX-Retarget"], page["HX-Reswap"] = "#main", "afterbegin show:top"
        return page
    if wanted_of(request.headers.get("Accept", "").encode()) is Wanted.JSON:
        body = body_of(problem_of_fault(fault))
        return HttpResponse(body, status=fault.status, content_type=CONTENT_TYPE)
    return show_fault(request, "pages/refused.html", told, status=fault.status)


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_PREFIXES)


def _page_of(request: HttpRequest) -> str:
    """The page a fragment was wanted for, as its script says; only ever one of ours."""
    page = request.headers.get("HX-Current-URL", "")
    is_ours = url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()})
    return page if is_ours else "/"


def _sign_in(page: str) -> str:
    """Where to sign in, and from there to the page, unless its address is too long for that."""
    address = f"{reverse('login')}?{urlencode({'next': page})}"
    return address if len(address) <= _MOST_ADDRESS_CHARS else reverse("login")
