"""Somebody's own account: how the pages look to them, their password, their sessions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from helmdash.operations.access import passwords, sessions
from helmdash.operations.access.looks import keep_look
from helmdash.pages import braking, scope
from helmdash.pages.forms.forms import EndSessionForm, LookForm
from helmdash.pages.guards import post_only
from helmdash.pages.render import PageRequest, show_framed
from helmdash.pages.views.account.preferences import chosen_theme, remember_theme
from helmdash.pages.zones import CHOSEN_ZONE_COOKIE, chosen_zone
from helmdash.queries.access.sessions import sessions_of


@require_safe
@never_cache
def profile_page(request: PageRequest) -> HttpResponse:
    """For everybody who is signed in, members of nothing included."""
    return _show(request, password=_password_form(request))


@post_only("profile")
def save_look(request: PageRequest) -> HttpResponse:
    """The color scheme and the zone of times, kept with the account."""
    form = LookForm(request.POST)
    if not form.is_valid():
        return _show(request, password=_password_form(request), look=form)
    theme = form.cleaned_data["theme"]
    keep_look(user_id=request.user.pk, theme=theme, zone=form.cleaned_data["zone"])
    response = HttpResponseRedirect(request.page)
    remember_theme(response, theme)
    # Accounts keep it now.
    response.delete_cookie(CHOSEN_ZONE_COOKIE, samesite="Lax")
    messages.success(request, "Saved, for every browser in which you sign in.")
    return response


@post_only("profile")
def change_password(request: PageRequest) -> HttpResponse:
    """Asks for the old password, and so lets one guess it: behind the brake of sign-in."""
    form = _password_form(request, is_sent=True)
    if form is None:
        messages.error(request, "password: your identity provider lets you in, and it alone")
        return HttpResponseRedirect(request.page)
    attempt = braking.begin(request, account=request.user.get_username())
    is_valid = form.is_valid()
    if "old_password" not in form.errors:
        braking.succeed(attempt)
    if not is_valid:
        return _show(request, password=form)
    account = request.user
    passwords.set_own_password(account=account, password=form.cleaned_data["new_password1"])
    update_session_auth_hash(request, account)
    messages.success(request, "The password is changed; your other sessions have ended.")
    return HttpResponseRedirect(request.page)


@post_only("profile")
def end_sessions(request: PageRequest) -> HttpResponse:
    """End one of one's own sessions, or all but this one."""
    form = EndSessionForm(request.POST)
    if form.is_valid():
        ended = sessions.end(
            actor=scope.current_actor(request),
            user_id=request.user.pk,
            only=form.cleaned_data["session"],
            but=request.session.session_key or "",
        )
        messages.success(request, f"Ended: {ended}.")
    else:
        messages.error(request, "session: choose one of the list")
    return HttpResponseRedirect(request.page)


def _password_form(request: PageRequest, *, is_sent: bool = False) -> SetPasswordForm[User] | None:
    """Who came by a link has no old password to know. None: they are to have none."""
    if not passwords.may_set_own(request.user):
        return None
    kind = PasswordChangeForm if request.user.has_usable_password() else SetPasswordForm
    form = kind(request.user, request.POST if is_sent else None)
    # Who opens the page may want something else.
    for field in form.fields.values():
        field.widget.attrs.pop("autofocus", None)
    return form


def _show(
    request: PageRequest, *, password: SetPasswordForm[User] | None, look: LookForm | None = None
) -> HttpResponse:
    chosen = {"theme": chosen_theme(request), "zone": chosen_zone(request)}
    now = timezone.now()
    context = {
        "now": now,
        "look": look or LookForm(initial=chosen),
        "password": password,
        "sessions": sessions_of(user_id=request.user.pk, this=request.session.session_key, now=now),
    }
    status = 422 if any(form is not None and form.errors for form in (password, look)) else 200
    return show_framed(request, "pages/profile.html", context, status=status)
