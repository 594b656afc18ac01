"""Signing in: with a name and password, or once with the link the terminal shows."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.views import (
    INTERNAL_RESET_SESSION_TOKEN,
    LoginView,
    PasswordResetConfirmView,
)
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from helmdash import conf
from helmdash.core.access.permissions import Forbidden
from helmdash.operations.access import passwords, sign_in_links
from helmdash.pages import braking, scope
from helmdash.pages.forms.forms import ResetForm

BACKEND = "helmdash.records.backend.MembershipBackend"


class SignInView(LoginView):
    """Django's sign-in, with our page and behind the throttle."""

    template_name = "pages/login.html"
    authentication_form = braking.SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Who is signed in, by now or already, is led to an address that names a project."""
        response = super().dispatch(request, *args, **kwargs)
        if request.user.is_authenticated:
            settle_project(request)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whether a link can be mailed to who has forgotten their password; what the identity
        provider is called, where there is one."""
        env = conf.env()
        provider = env.oidc_name if env.oidc_issuer else ""
        can_mail = bool(env.smtp_url and _mailed_base(self.request))
        return super().get_context_data(can_mail=can_mail, provider=provider, **kwargs)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """A one-time link: GET only shows a button, so that a preview of the link cannot use it up.

    A good one works for who has to wait, too, and ends the wait: nobody guesses it. Others count.
    """
    is_used = request.method == "POST"
    if is_used:
        user = sign_in_links.use_link(uid=uid, token=token, now=timezone.now())
    else:
        user = sign_in_links.find_link_user(uid=uid, token=token)
    if user is None:
        braking.begin(request, account=None)
        return render(request, "pages/login_link.html", {"is_usable": False}, status=410)
    if not is_used:
        return render(request, "pages/login_link.html", {"is_usable": True, "name": user})
    login(request, user, backend=BACKEND)
    braking.release(request, account=user.get_username())
    settle_project(request)
    return HttpResponseRedirect(reverse("overview"))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def ask_reset(request: HttpRequest) -> HttpResponse:
    """Mail a link to whoever forgot their password. The answer is the same whether there is such an
    account or not; each try counts, for its account and its address. Raises Http404 where no mail
    is configured, or none could lead back."""
    if not conf.env().smtp_url:
        raise Http404("no mail server is configured")
    base = _mailed_base(request)
    if not base:
        raise Http404("HELMDASH_PUBLIC_URL is not set")
    form = ResetForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        name = form.cleaned_data["account"]
        # As addresses are compared: one mailbox is one account, in whatever letters it is typed.
        braking.begin(request, account=f"reset {name.upper()}")
        passwords.mail_reset_link(name=name, base=base)
    return render(request, "pages/ask_reset.html", {"form": form, "is_sent": form.is_valid()})


class ResetView(PasswordResetConfirmView):
    """Django's: the token of the mail, kept out of the address, and then a new password."""

    template_name = "pages/reset_password.html"
    success_url = reverse_lazy("login")

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Links that are made up count for their address."""
        response = super().dispatch(*args, **kwargs)
        if response.status_code == HTTPStatus.OK and not self.validlink:
            braking.begin(self.request, account=None)
        return response

    def get_user(self, uidb64: str) -> Any:
        """Whose link it is; None for nobody, and for who may have no password by now."""
        account = super().get_user(uidb64)
        if account is None or not account.is_active:
            return None
        return account if passwords.may_set_own(account) else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the password as any other that its owner sets."""
        account = form.user
        passwords.set_own_password(account=account, password=form.cleaned_data["new_password1"])
        braking.release(self.request, account=account.get_username())
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        messages.success(self.request, "The new password is set. Sign in with it.")
        return HttpResponseRedirect(str(self.success_url))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and lead to the sign-in page."""
    logout(request)
    return HttpResponseRedirect(reverse("login"))


def _mailed_base(request: HttpRequest) -> str:
    return conf.mailed_base(conf.env(), request.build_absolute_uri("/"))


def settle_project(request: HttpRequest) -> None:
    """Have the address that somebody is led to name a project."""
    # Somebody without a project is told so by the page that they are led to.
    with suppress(Forbidden):
        scope.read(request)
