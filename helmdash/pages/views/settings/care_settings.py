"""Settings of care: whether it is on in the gateway, and the texts of guidance."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right
from helmdash.core.care.guidance import (
    DEFAULT_TEXTS,
    PLACEHOLDERS,
    SAMPLE_FACTS,
    render,
    text_problems,
)
from helmdash.core.care.remediation import Strength
from helmdash.operations.access import project_settings
from helmdash.operations.access.project_settings import ProjectError, own_text
from helmdash.pages import scope
from helmdash.pages.guards import post_only, takes
from helmdash.pages.parts import words
from helmdash.pages.render import PageRequest, show
from helmdash.queries.conversations.care_settings import care_settings

_WHEN = {
    Strength.SOFT: "The first three generations above the caution line.",
    Strength.HARD: "The fourth one, and then one generation in each cadence of the budget.",
    Strength.CRITICAL: "Each of the five generations above the critical line, before the clear.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """One text as the form shows it, and as an agent would get it with sample figures."""

    strength: str
    label: str
    when: str
    text: str
    is_shipped: bool
    preview: str
    problems: tuple[str, ...]


@require_safe
def care_page(request: PageRequest) -> HttpResponse:
    """The switch and the three texts of the project in force."""
    stored = asdict(care_settings(project_id=scope.current_project(request).id))
    return _show(request, stored["remediation"], stored)


@post_only("care-settings")
@takes(Right.CHANGE_SETTINGS)
def save_care(request: PageRequest) -> HttpResponse:
    """Store the switch and the texts."""
    given, is_on = _given(request), "remediation" in request.POST
    try:
        project_settings.set_care_settings(
            actor=scope.current_actor(request),
            project_id=scope.current_project(request).id,
            remediation=is_on,
            **given,
        )
    except ProjectError as error:
        return _show(request, is_on, given, refused=error, status=422)
    messages.success(request, "Saved. The next guidance is given in these words.")
    return HttpResponseRedirect(reverse("care-settings"))


@post_only("care-settings")
@takes(Right.CHANGE_SETTINGS)
def preview_care(request: PageRequest) -> HttpResponse:
    """The texts as typed, with sample figures; `reset` puts one of the shipped texts back."""
    given, is_on = _given(request), "remediation" in request.POST
    reset = request.POST.get("reset", "")
    if f"{reset}_text" in given:
        given[f"{reset}_text"] = ""
    return _show(request, is_on, given, is_draft=True)


def _given(request: PageRequest) -> dict[str, str]:
    names = [f"{strength.value}_text" for strength in Strength]
    return {name: request.POST.get(name, "") for name in names}


def _show(
    request: PageRequest,
    is_on: bool,
    texts: dict[str, str],
    *,
    refused: ProjectError | None = None,
    is_draft: bool = False,
    status: int = 200,
) -> HttpResponse:
    context = {
        "is_on": is_on,
        "parts": [_part(each, texts[f"{each.value}_text"]) for each in Strength],
        "placeholders": PLACEHOLDERS.items(),
        "refused": refused,
        "refused_name": words.field_name(refused.field) if refused else "",
        "is_draft": is_draft,
    }
    fragment = "pages/_care_previews.html" if is_draft else None
    return show(request, "pages/care.html", context, fragment=fragment, status=status)


def _part(strength: Strength, text: str) -> TextPart:
    own = own_text(strength, text)
    problems = text_problems(own) if own else ()
    return TextPart(
        strength=strength.value,
        label=strength.value.title(),
        when=_WHEN[strength],
        text=own or DEFAULT_TEXTS[strength].strip(),
        is_shipped=not own,
        preview="" if problems else render(strength, SAMPLE_FACTS[strength], own),
        problems=tuple(problems),
    )
