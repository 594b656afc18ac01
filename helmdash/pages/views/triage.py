"""What people say about trouble, from the page that shows it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone

from helmdash.core.access.permissions import Right
from helmdash.operations import triage
from helmdash.pages import scope
from helmdash.pages.forms import FailureMarkForm
from helmdash.pages.guards import post_only, takes
from helmdash.pages.render import PageRequest

_SAID = {
    "resolved": "Resolved: it comes back with the next call that fails so.",
    "muted": "Muted for a day.",
    "open": "Open again.",
}


@post_only("overview")
@takes(Right.TRIAGE)
def mark_failures(request: PageRequest) -> HttpResponse:
    """Resolve, mute or open again what a model's calls fail for."""
    scoped = scope.read(request)
    form = FailureMarkForm(request.POST)
    if form.is_valid():
        state = form.cleaned_data["state"]
        triage.mark_failures(
            actor=scoped.actor,
            project=scoped.project,
            cause=form.cleaned_data["cause"],
            model_key=form.cleaned_data["model"],
            state=state,
            now=timezone.now(),
        )
        messages.success(request, _SAID[state])
    else:
        messages.error(request, "; ".join(form.problems))
    return HttpResponseRedirect(f"{request.page}#failing")
