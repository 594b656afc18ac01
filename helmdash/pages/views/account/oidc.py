"""Sign-in by the identity provider of the operator's choice: there, and back with a proof.

What has to come back waits in a signed cookie, not in a session: whoever only asks makes no row.
"""

from __future__ import annotations

import logging
from typing import Final

from django.contrib.auth import login
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from helmdash import conf
from helmdash.core.access.oidc_roles import parse_role_rules
from helmdash.operations.access.keys import AccessError
from helmdash.operations.access.oidc_accounts import account_of
from helmdash.pages import braking
from helmdash.pages.views.account.sign_in import BACKEND, settle_project
from helmdash.upstream.services import oidc
from helmdash.upstream.services.oidc import OidcBusy, OidcFailed, Provider

_log = logging.getLogger(__name__)
_COOKIE: Final = "helmdash_oidc"
_SALT: Final = "helmdash.oidc"
# Long enough to type a password and a second factor there.
_SECONDS: Final = 600
# A browser keeps 4 KiB in a cookie.
_NEXT_CHARS: Final = 1_000


@never_cache
@require_safe
def begin(request: HttpRequest) -> HttpResponse:
    """Lead to the provider. A link: the policy of contents lets no form lead to another host."""
    provider = _provider()
    try:
        begun = oidc.begin(provider, redirect_uri=_back(request))
    except OidcBusy as error:
        return _busy(request, error)
    except OidcFailed as error:
        return _failed(request, error)
    response = HttpResponseRedirect(begun.url)
    kept = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier}
    value = signing.dumps({**kept, "next": request.GET.get("next", "")[:_NEXT_CHARS]}, salt=_SALT)
    response.set_cookie(
        _COOKIE,
        value,
        max_age=_SECONDS,
        path=reverse("oidc"),
        secure=request.is_secure(),
        httponly=True,
        # Lax: the way back comes from another site.
        samesite="Lax",
    )
    return response


@never_cache
@require_safe
def done(request: HttpRequest) -> HttpResponse:
    """Back from the provider: sign in whom it vouches for. What fails counts as a wrong password of
    the address would."""
    provider = _provider()
    try:
        kept = signing.loads(request.COOKIES.get(_COOKIE, ""), salt=_SALT, max_age=_SECONDS)
        claims = oidc.finish(
            provider,
            redirect_uri=_back(request),
            answer=request.build_absolute_uri(),
            state=kept["state"],
            nonce=kept["nonce"],
            verifier=kept["verifier"],
        )
        settings = conf.env()
        account = account_of(
            issuer=provider.issuer,
            claims=claims,
            claim=settings.oidc_claim,
            rules=parse_role_rules(settings.oidc_roles),
        )
    except OidcBusy as error:
        return _busy(request, error)
    except (signing.BadSignature, OidcFailed, AccessError) as error:
        braking.begin(request, account=None)
        return _failed(request, error)
    login(request, account, backend=BACKEND)
    settle_project(request)
    target = kept["next"]
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    response = HttpResponseRedirect(target if is_ours else reverse("overview"))
    response.delete_cookie(_COOKIE, path=reverse("oidc"), samesite="Lax")
    return response


def _provider() -> Provider:
    settings = conf.env()
    if not settings.oidc_issuer:
        raise Http404("no identity provider is configured")
    return Provider(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        scopes=settings.oidc_scopes,
    )


def _back(request: HttpRequest) -> str:
    base = conf.env().public_url or request.build_absolute_uri("/").rstrip("/")
    return f"{base}{reverse('oidc-done')}"


def _busy(request: HttpRequest, error: OidcBusy) -> HttpResponse:
    """Nothing of the visit is used up: to ask for the same address again goes on with it."""
    _log.warning("a sign-in by the identity provider has to wait: %s", error)
    context = {"wait_s": error.wait_s}
    response = render(request, "pages/oidc_failed.html", context, status=503)
    response["Retry-After"] = str(error.wait_s)
    return response


def _failed(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.warning("sign-in by the identity provider failed: %s", error)
    told = str(error).removeprefix("user: ") if isinstance(error, AccessError) else ""
    response = render(request, "pages/oidc_failed.html", {"told": told}, status=403)
    response.delete_cookie(_COOKIE, path=reverse("oidc"), samesite="Lax")
    return response
