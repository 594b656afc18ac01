"""What a reader sets for themselves, and the page of keys."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from helmdash.pages.render import PageRequest, show

YEAR_S = 365 * 24 * 3600
THEMES = ("light", "dark")
THEME_COOKIE = "helmdash_theme"


@require_safe
def help_page(request: PageRequest) -> HttpResponse:
    """The keys and the words; the same text as the dialog."""
    return show(request, "pages/help.html", {})


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system has it; kept in a cookie that the server reads."""
    target = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
        target = "/"
    response = HttpResponseRedirect(target)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(THEME_COOKIE, theme, max_age=YEAR_S, samesite="Lax", httponly=True)
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers ask here for pages that name no icon."""
    return HttpResponseRedirect(static("favicon.svg"))
