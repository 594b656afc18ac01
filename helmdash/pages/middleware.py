"""Who may see pages: signed-in people. Programs have their own door, the API."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

# The liveness checks are open, the API and the metrics ask for a key (decisions.md "API").
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/favicon.ico"})
_OPEN_PREFIXES = ("/login/", "/static/", "/api/")


class SignInRequiredMiddleware:
    """Sends everybody else to the sign-in page, and back to where they wanted to go after it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_open(request.path) or request.user.is_authenticated:
            return self._get_response(request)
        if request.headers.get("HX-Request") == "true":
            # A redirect would put the sign-in page into the middle of another page.
            response = HttpResponse(status=204)
            response["HX-Redirect"] = _sign_in(_page_of(request))
            return response
        return HttpResponseRedirect(_sign_in(request.get_full_path()))


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_PREFIXES)


def _page_of(request: HttpRequest) -> str:
    """The page a fragment was wanted for, as its script says; only ever one of ours."""
    page = request.headers.get("HX-Current-URL", "")
    is_ours = url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()})
    return page if is_ours else "/"


def _sign_in(page: str) -> str:
    return f"{reverse('login')}?{urlencode({'next': page})}"
