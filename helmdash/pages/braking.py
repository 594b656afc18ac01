"""The brake at every form that asks for a password, and what is answered to who has to wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from helmdash.core.access.client_address import counted_as
from helmdash.metrics import limited_requests
from helmdash.operations.access import sign_in_throttle
from helmdash.operations.access.password_hashing import TooManyHashes
from helmdash.operations.access.sign_in_throttle import MustWait, SignInTry
from helmdash.operations.database.clock import shared_now


def begin(request: HttpRequest, *, account: str | None) -> SignInTry:
    """Count a try of this request as wrong. account None: the address alone. Raises MustWait."""
    return sign_in_throttle.begin(account=account, address=address_of(request), now=shared_now())


def succeed(attempt: SignInTry) -> None:
    """The try was right: it is not counted any more, and the account has no wait."""
    sign_in_throttle.succeed(attempt, now=shared_now())


def release(request: HttpRequest, *, account: str) -> None:
    """Whoever has proved to be this account in another way waits no longer."""
    now = shared_now()
    sign_in_throttle.release(account=account, address=address_of(request), now=now)


def address_of(request: HttpRequest) -> str | None:
    """Whom limits count this request as; None where it comes from no address."""
    address = request.META.get("REMOTE_ADDR", "")
    return counted_as(address) if address else None


class SignInForm(AuthenticationForm):
    """Checks a password only where neither the account nor the address has to wait."""

    def clean(self) -> Any:
        """What Django's does. Raises MustWait."""
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        # Without both, Django looks at no password either.
        if name is None or not password or self.request is None:
            return super().clean()
        attempt = begin(self.request, account=name)
        try:
            cleaned = super().clean()
        except TooManyHashes:
            sign_in_throttle.give_back(attempt, now=shared_now())
            raise
        succeed(attempt)
        return cleaned


class TooManyTriesMiddleware:
    """Answers 429 to who has to wait, whatever page they asked."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """None: somebody else's exception."""
        if not isinstance(exception, MustWait | TooManyHashes):
            return None
        if isinstance(exception, MustWait):
            limited_requests.labels("wrong_passwords").inc()
        wait_s = exception.wait_s
        response = render(request, "429.html", {"wait_s": wait_s}, status=429)
        response["Retry-After"] = str(wait_s)
        response["Cache-Control"] = "no-store"
        return response
