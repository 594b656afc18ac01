"""What is not there, and what is not allowed: told within the frame of the pages."""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.defaults import server_error

from helmdash.doors.answers import page_about
from helmdash.doors.faults import DatabaseUnavailable
from helmdash.pages.render import show_fault


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, with the sentence of whatever raised it."""
    return show_fault(request, "404.html", {"exception": exception}, status=404)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the right that is missing."""
    return show_fault(request, "403.html", {"exception": str(exception)}, status=403)


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403, for a form without the token of its page; reason: Django's, for its log."""
    return show_fault(request, "403_csrf.html", {"reason": reason}, status=403)


def failed(request: HttpRequest) -> HttpResponse:
    """500; or 503 where the database broke off what it was asked, as it does when it is stopped."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return server_error(request)
    fault = DatabaseUnavailable()
    response = HttpResponse(page_about(fault.status, str(fault)), status=fault.status)
    response["Retry-After"] = str(fault.retry_after_s)
    response["Cache-Control"] = "no-store"
    return response
