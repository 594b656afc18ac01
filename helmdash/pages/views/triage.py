"""What people say about trouble, from the page that shows it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from helmdash.core.access.permissions import Right
from helmdash.operations import triage
from helmdash.operations.triage import NoSuchConversation, Word
from helmdash.pages import scope
from helmdash.pages.forms.forms import FailureMarkForm, TriageForm
from helmdash.pages.guards import post_only, require_storable, takes
from helmdash.pages.render import PageRequest

# The longest are two times; what is longer would lead to no address at all.
_RANGE_CHARS = 100
_OF_CONVERSATIONS = {
    Word.DONE: "Done: it comes back when a call gives a new reason.",
    Word.SNOOZED: "Snoozed for an hour, unless it gets worse.",
    Word.OPEN: "Open again.",
    Word.NOTE: "Noted.",
}
_SAID = {
    "resolved": "Resolved: it comes back with the next call that fails for this cause.",
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
    asked = request.POST.get("range", "")
    query = f"?{urlencode({'range': asked})}" if 0 < len(asked) <= _RANGE_CHARS else ""
    return HttpResponseRedirect(f"{request.page}{query}#failing")


@post_only("conversation")
@takes(Right.TRIAGE)
def mark_conversation(request: PageRequest, name: str) -> HttpResponse:
    """Say of a conversation that it is done, snoozed or open, or leave a note. Raises Http404 for
    one that does not exist."""
    require_storable(name)
    scoped = scope.read(request)
    form = TriageForm(request.POST)
    if form.is_valid():
        word = form.cleaned_data["word"]
        try:
            triage.say(
                actor=scoped.actor,
                project=scoped.project,
                conversation=name,
                word=word,
                text=form.cleaned_data["text"],
                now=timezone.now(),
            )
        except NoSuchConversation as error:
            raise Http404(str(error)) from None
        messages.success(request, _OF_CONVERSATIONS[word])
    else:
        messages.error(request, "; ".join(form.problems))
    is_of_overview = request.POST.get("back") == "overview"
    return HttpResponseRedirect(reverse("overview") if is_of_overview else f"{request.page}#triage")
