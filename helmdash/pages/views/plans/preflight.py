"""The conversations that a figure of a preflight counts."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.budgets.preflight import Room
from helmdash.pages import scope
from helmdash.pages.parts.budgets.preflight import ROOM_WORDS
from helmdash.pages.render import PageRequest, show
from helmdash.queries import preflight


@require_safe
def preflight_page(request: PageRequest) -> HttpResponse:
    """?kind=, source and model of a way: its conversations of now, with room those that would stand
    so; without them all ways."""
    request.now = timezone.now()
    project_id = scope.current_project(request).id
    kind, source, model, word = (
        request.GET.get(name, "") for name in ("kind", "source", "model", "room")
    )
    context: dict[str, object] = {"rooms": ROOM_WORDS, "kind": kind, "source": source}
    if not kind:
        context["preflights"] = preflight.preflights(project_id=project_id, now=request.now).items
        return show(request, "pages/preflight.html", context)
    if word and word not in set(Room):
        raise Http404(f"room: one of {', '.join(Room)}, or none for all.")
    room = Room(word) if word else None
    found = preflight.conversations_of(
        project_id=project_id, kind=kind, source=source, model=model, room=room, now=request.now
    )
    if found is None:
        raise Http404("No conversation of now would go this way (any more).")
    context |= {"model": model, "room": room, "conversations": found}
    return show(request, "pages/preflight.html", context)
