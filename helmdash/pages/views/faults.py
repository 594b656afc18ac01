"""What is not there, and what is not allowed: told within the frame of the pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from helmdash.pages.render import show_fault


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, with the sentence of whatever raised it."""
    return show_fault(request, "404.html", {"exception": exception}, status=404)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the right that is missing."""
    return show_fault(request, "403.html", {"exception": str(exception)}, status=403)
