"""Signing in: with a name and password, or once with the link the terminal shows."""

from __future__ import annotations

from contextlib import suppress

from django.contrib import admin
from django.contrib.auth import login, logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from helmdash.core.access.permissions import Forbidden
from helmdash.operations.access import sign_in_links
from helmdash.pages import braking, scope

_BACKEND = "helmdash.records.backend.MembershipBackend"


class SignInView(LoginView):
    """Django's sign-in, with our page and behind the throttle."""

    template_name = "pages/login.html"
    authentication_form = braking.SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Who is signed in, by now or already, is led to an address that names a project."""
        response = super().dispatch(request, *args, **kwargs)
        if request.user.is_authenticated:
            _settle_project(request)
        return response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """A one-time link: GET only shows a button, so that a preview of the link cannot use it up.

    A good one works for who has to wait, too, and ends the wait: nobody guesses it. Others count.
    """
    user = sign_in_links.find_link_user(uid=uid, token=token)
    if user is None:
        braking.begin(request, account=None)
        return render(request, "pages/login_link.html", {"is_usable": False}, status=410)
    if request.method != "POST":
        return render(request, "pages/login_link.html", {"is_usable": True, "name": user})
    login(request, user, backend=_BACKEND)
    braking.release(request, account=user.get_username())
    _settle_project(request)
    return HttpResponseRedirect(reverse("overview"))


def change_password(request: HttpRequest) -> HttpResponse:
    """The admin's page, which asks for the old password and so lets one guess it."""
    if request.method != "POST":
        return admin.site.password_change(request)
    attempt = braking.begin(request, account=request.user.get_username())
    response = admin.site.password_change(request)
    form = (getattr(response, "context_data", None) or {}).get("form")
    if form is None or "old_password" not in form.errors:
        braking.succeed(attempt)
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and lead to the sign-in page."""
    logout(request)
    return HttpResponseRedirect(reverse("login"))


def _settle_project(request: HttpRequest) -> None:
    # Somebody without a project is told so by the page that they are led to.
    with suppress(Forbidden):
        scope.read(request)
