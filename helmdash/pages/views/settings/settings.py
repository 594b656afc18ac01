"""Settings: API keys, demo data, and the way to the admin."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right, grantable
from helmdash.operations.access import keys
from helmdash.operations.access.keys import AccessError, NewKey
from helmdash.operations.demo import loading
from helmdash.operations.jobs import asking
from helmdash.operations.recorder import recorder
from helmdash.pages import scope
from helmdash.pages.forms.forms import KeyForm
from helmdash.pages.guards import post_only, takes
from helmdash.pages.render import PageRequest, show
from helmdash.queries.access.access import api_keys
from helmdash.queries.database import sizes


@require_safe
def settings_page(request: PageRequest) -> HttpResponse:
    """Keys and data of the current project."""
    return _show(request, KeyForm(initial={"scopes": list(keys.DEFAULT_SCOPES)}))


@post_only("settings")
@takes(Right.MANAGE_KEYS)
def create_key(request: PageRequest) -> HttpResponse:
    """Make a key; the answer is the only page that ever shows it."""
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    try:
        made = keys.create_key(
            actor=scope.current_actor(request),
            name=form.cleaned_data["name"],
            scopes=tuple(form.cleaned_data["scopes"]),
            project=scope.current_project(request).slug,
            expires_at=form.cleaned_data["expires"],
        )
    except AccessError as error:
        form.add_error("name", str(error).removeprefix("name: "))
        return _show(request, form, status=422)
    fresh = KeyForm(initial={"scopes": list(keys.DEFAULT_SCOPES)})
    response = _show(request, fresh, made=made)
    response["Cache-Control"] = "no-store"
    return response


@post_only("settings")
@takes(Right.MANAGE_KEYS)
def revoke_key(request: PageRequest) -> HttpResponse:
    """From now on requests with the key get 401. It stays in the list."""
    name = request.POST.get("name", "").replace("\x00", "")
    try:
        keys.revoke_key(
            actor=scope.current_actor(request),
            name=name,
            project=scope.current_project(request).slug,
            now=timezone.now(),
        )
        messages.success(request, f"The key {name} is revoked: requests with it get a 401 now.")
    except AccessError as error:
        messages.error(request, str(error))
    return HttpResponseRedirect(reverse("settings"))


@post_only("settings")
def load_demo(request: PageRequest) -> HttpResponse:
    """Have a server load the demo data anew, and lead to its project."""
    try:
        asking.load_demo(actor=scope.current_actor(request))
    except loading.DemoBusy as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(reverse("settings"))
    scope.lead_to(request, loading.DEMO_SLUG)
    return HttpResponseRedirect(reverse("overview"))


@require_safe
def demo_part(request: PageRequest) -> HttpResponse:
    """The banner above each page of demo data, asked for again while it is loaded."""
    response = show(request, "pages/_demo.html", {})
    # The page below it has what came with the last step.
    response["HX-Trigger"] = "tick"
    return response


@post_only("settings")
def cancel_demo(request: PageRequest) -> HttpResponse:
    """End the loading of demo data after the step that it is at."""
    asking.cancel_demo(actor=scope.current_actor(request))
    return HttpResponseRedirect(reverse("overview"))


@post_only("settings")
def remove_demo(request: PageRequest) -> HttpResponse:
    """Remove the demo project with all it holds; real data is not touched."""
    try:
        is_removed = asking.remove_demo(actor=scope.current_actor(request))
    except loading.DemoBusy as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(reverse("settings"))
    scope.forget(request)
    messages.success(
        request, "The demo data is removed." if is_removed else "There was no demo data to remove."
    )
    return HttpResponseRedirect(reverse("overview"))


def _show(
    request: PageRequest, form: KeyForm, *, made: NewKey | None = None, status: int = 200
) -> HttpResponse:
    request.now = timezone.now()
    scoped = scope.read(request)
    project = scoped.project
    context = {
        "form": form,
        "made": made,
        "keys": api_keys(project_id=project.id),
        "scopes": grantable(scoped.actor, project_id=project.id, is_default=project.is_default),
        "ticked": set(form["scopes"].value() or ()),
        "counts": sizes.row_counts(project_id=project.id),
        "recorder_state": recorder().state().value,
        "recorder_waiting": recorder().waiting(),
    }
    return show(request, "pages/settings.html", context, status=status)
