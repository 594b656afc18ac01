"""Care of one conversation by hand: its reminders, and a clear at once.

Each form works without scripts: it answers with a redirect to the conversation then, and with the
reminders' part of the page when HTMX asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Person, Right
from helmdash.operations import care
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.pages import scope
from helmdash.pages.guards import post_only, require_storable, takes
from helmdash.pages.parts import care as care_parts
from helmdash.pages.parts import words
from helmdash.pages.parts.reminders import Notes, Typed, notes_of
from helmdash.pages.render import PageRequest, show, unless_known
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.conversations.care import reminders

_PART = "pages/_reminders.html"
# No conversation has a reminder at a position of so many digits.
_DIGITS = 6
# Where the focus goes once a reminder is deleted.
ADD_FORM = "add"
_GONE = "This reminder is not there any more."
_DELETED = "This reminder was deleted meanwhile. Add your words as a new one?"
_OVERTAKEN = (
    "Somebody else changed this reminder meanwhile. Its newer text is shown with it, yours is in "
    "the form: save again to put yours in its place."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What a form asks for; `position` is where the reminder stands on the page."""

    actor: Person
    project: ProjectInfo
    conversation: str
    typed: Typed
    position: int
    now: datetime


@require_safe
def reminder_part(request: PageRequest, name: str) -> HttpResponse:
    """The reminders of a conversation; the page polls this apart from what its calls change."""
    require_storable(name)
    if not request.htmx:
        return HttpResponseRedirect(reverse("conversation", args=[name]) + "#reminders")
    notes = _notes(request, name)
    request.etag = notes.etag
    return unless_known(request, lambda: show(request, _PART, {"notes": notes}))


@post_only("conversation")
@takes(Right.CARE)
def change_reminders(request: PageRequest, name: str) -> HttpResponse:
    """Add, save, delete or move a reminder (`do`). Raises Http404 for a conversation that does not
    exist."""
    require_storable(name)
    typed = Typed(
        do=request.POST.get("do", ""),
        id=request.POST.get("id", "").replace("\x00", ""),
        kind=request.POST.get("kind", "note"),
        content=request.POST.get("content", ""),
        updated_at=request.POST.get("updated_at", ""),
    )
    change = _CHANGES.get(typed.do)
    if change is None:
        return _answer(request, name, typed.because("do: send add, save, delete, up or down"))
    asked = _Change(
        actor=scope.current_actor(request),
        project=scope.current_project(request),
        conversation=name,
        typed=typed,
        position=_position(request.POST.get("position", "")),
        now=timezone.now(),
    )
    if _is_overtaken(asked):
        return _answer(request, name, typed.because(_OVERTAKEN))
    try:
        done = change(asked)
    except care.NoConversation:
        raise Http404(f"There is no conversation {name}.") from None
    except care.NoReminder:
        if typed.do != "save":
            return _answer(request, name, typed.because(_GONE))
        # Its place is gone, the words are not.
        return _answer(request, name, replace(typed, do="add").because(_DELETED))
    except care.CareProblem as problem:
        return _answer(request, name, typed.because(_said(problem)))
    return _answer(request, name, done=done)


@post_only("conversation")
@takes(Right.CARE)
def clear_now(request: PageRequest, name: str) -> HttpResponse:
    """Open the next round at once, as `clear_mind` does. Raises Http404 for a conversation that
    does not exist."""
    require_storable(name)
    try:
        cleared = care.clear(
            actor=scope.current_actor(request),
            project=scope.current_project(request),
            conversation=name,
            reminder_content=request.POST.get("reminder_content", "").strip() or None,
            reason=care_parts.BY_HAND,
            now=timezone.now(),
        )
    except care.NoConversation:
        raise Http404(f"There is no conversation {name}.") from None
    except care.CareProblem as problem:
        messages.error(request, f"Not cleared. {_said(problem)}")
    else:
        number = cleared.round_number
        said = (
            f"Cleared: round {number} is open."
            if cleared.is_new
            else f"Round {number} is open already and has no call yet; nothing was cleared."
        )
        messages.success(request, said)
    return HttpResponseRedirect(reverse("conversation", args=[name]))


@post_only("conversation")
@takes(Right.ERASE)
def erase(request: PageRequest, name: str) -> HttpResponse:
    """Erase the conversation, once its id was typed to confirm it."""
    require_storable(name)
    if request.POST.get("confirm", "").strip() != name:
        messages.error(request, "Not erased. Type the conversation's id to confirm it.")
        return HttpResponseRedirect(reverse("conversation", args=[name]) + "#erase")
    erased = erase_conversation(
        actor=scope.current_actor(request),
        project=scope.current_project(request),
        conversation=name,
        now=timezone.now(),
    )
    messages.success(request, f"Erased {name}: {erased.calls} calls and {erased.messages} texts.")
    return HttpResponseRedirect(reverse("conversations"))


@post_only("conversation")
@takes(Right.CARE)
def go_on(request: PageRequest, name: str) -> HttpResponse:
    """Let care go on clearing, where it has stopped. Raises Http404 for a conversation that does
    not exist."""
    require_storable(name)
    try:
        has_stopped = care.go_on(
            actor=scope.current_actor(request),
            project=scope.current_project(request),
            conversation=name,
        )
    except care.NoConversation:
        raise Http404(f"There is no conversation {name}.") from None
    if has_stopped:
        messages.success(request, "Care goes on: the next generation begins with a clear.")
    else:
        messages.success(request, "Care had not stopped; nothing was changed.")
    return HttpResponseRedirect(reverse("conversation", args=[name]))


def _said(problem: care.CareProblem) -> str:
    return f"{words.field_name(problem.field)}: {problem.message}"


def _is_overtaken(change: _Change) -> bool:
    """Whether somebody else wrote the reminder since the form was shown that would save it."""
    typed = change.typed
    if typed.do != "save" or not typed.updated_at:
        return False
    found = reminders(project_id=change.project.id, conversation=change.conversation) or ()
    stored = next((each for each in found if each.id == typed.id), None)
    return stored is not None and stored.updated_at.isoformat() != typed.updated_at


def _add(change: _Change) -> str:
    return care.add_reminder(
        actor=change.actor,
        project=change.project,
        conversation=change.conversation,
        content=change.typed.content,
        kind=change.typed.kind,
        now=change.now,
    ).id


def _save(change: _Change) -> str:
    return care.update_reminder(
        actor=change.actor,
        project=change.project,
        conversation=change.conversation,
        reminder_id=change.typed.id,
        content=change.typed.content,
        kind=change.typed.kind,
        now=change.now,
    ).id


def _delete(change: _Change) -> str:
    care.delete_reminder(
        actor=change.actor,
        project=change.project,
        conversation=change.conversation,
        reminder_id=change.typed.id,
        now=change.now,
    )
    return ADD_FORM


def _mover(by: int) -> Callable[[_Change], str]:
    def move(change: _Change) -> str:
        care.update_reminder(
            actor=change.actor,
            project=change.project,
            conversation=change.conversation,
            reminder_id=change.typed.id,
            position=max(change.position + by, 1),
            now=change.now,
        )
        return ""  # the button keeps the focus

    return move


def _position(text: str) -> int:
    """A position as the form sent it; whatever makes no sense is the first one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 1


_CHANGES: Mapping[str, Callable[[_Change], str]] = {
    "add": _add,
    "save": _save,
    "delete": _delete,
    "up": _mover(-1),
    "down": _mover(+1),
}


def _answer(
    request: PageRequest, name: str, typed: Typed | None = None, *, done: str = ""
) -> HttpResponse:
    """The part anew; with what was typed where it could not be kept.

    done: the reminder that was written, for the focus.
    """
    if typed is None and not request.htmx:
        return HttpResponseRedirect(reverse("conversation", args=[name]) + "#reminders")
    status = 422 if typed else 200
    context = {"notes": _notes(request, name, typed), "done": done}
    return show(request, "pages/reminders.html", context, fragment=_PART, status=status)


def _notes(request: PageRequest, name: str, typed: Typed | None = None) -> Notes:
    project = scope.current_project(request)
    notes = notes_of(project_id=project.id, conversation=name, now=timezone.now(), typed=typed)
    if notes is None:
        raise Http404(f"There is no conversation {name} in {project.name}.")
    return notes
