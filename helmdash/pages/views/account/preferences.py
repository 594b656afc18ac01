"""What a reader sets for themselves, and the page of keys."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from helmdash.operations.access.looks import keep_look
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import chosen_zone
from helmdash.queries.looks import look_of

YEAR_S = 365 * 24 * 3600
THEMES = ("light", "dark")
THEME_COOKIE = "helmdash_theme"


@require_safe
def help_page(request: PageRequest) -> HttpResponse:
    """The keys and the words; the same text as the dialog."""
    return show(request, "pages/help.html", {})


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system has it; kept with the account, and for the pages before sign-in
    in a cookie."""
    target = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
        target = "/"
    response = HttpResponseRedirect(target)
    asked = request.POST.get("theme", "")
    theme = asked if asked in THEMES else ""
    if request.user.is_authenticated:
        keep_look(user_id=request.user.pk, theme=theme, zone=chosen_zone(request))
    remember_theme(response, theme)
    return response


def chosen_theme(request: HttpRequest) -> str:
    """The color scheme that the reader chose; "" for the system's. A fault may come before it is
    known who asks."""
    user = getattr(request, "user", None)
    look = look_of(user) if user is not None else None
    theme = request.COOKIES.get(THEME_COOKIE, "") if look is None else look.theme
    return theme if theme in THEMES else ""


def remember_theme(response: HttpResponse, theme: str) -> None:
    """Have this browser show the pages before sign-in in a scheme; "" in the system's."""
    if theme:
        response.set_cookie(THEME_COOKIE, theme, max_age=YEAR_S, samesite="Lax", httponly=True)
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Browsers ask here for pages that name no icon."""
    return HttpResponseRedirect(static("favicon.svg"))
