"""The gateway: how a client is pointed at HelmDash, and what the project's policy is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from helmdash.core.access.permissions import Right
from helmdash.operations.access import project_settings
from helmdash.operations.access.project_settings import ProjectError
from helmdash.pages import scope
from helmdash.pages.guards import post_only, takes
from helmdash.pages.lists.offered import model_problem, offered_models, usable_upstreams
from helmdash.pages.parts import client_snippets, gateway_facts
from helmdash.pages.parts.snippets import KEY_VARIABLE
from helmdash.pages.render import PageRequest, show
from helmdash.queries import distinct_values
from helmdash.queries.access import wrong_addresses
from helmdash.queries.upstreams import UpstreamInfo

# A model id nobody has; the page says to replace it.
_BLANK = "MODEL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The model in the snippets; `is_blank` when its reader has to put an id there."""

    model: str
    is_blank: bool


@require_safe
def gateway_page(request: PageRequest) -> HttpResponse:
    """Snippets, headers, endpoints, policy; ?model= puts another model into the snippets."""
    return _show(request)


@post_only("gateway")
@takes(Right.CHANGE_SETTINGS)
def save_policy(request: PageRequest) -> HttpResponse:
    """What happens to large requests, and to models that no upstream lists."""
    try:
        project_settings.set_gateway_policy(
            actor=scope.current_actor(request),
            project_id=scope.current_project(request).id,
            budget_mode=request.POST.get("budget_mode", ""),
            default_upstream=request.POST.get("default_upstream", ""),
        )
    except ProjectError as error:
        return _show(request, refused=error)
    messages.success(request, "Saved. The gateway goes by it within a second.")
    return HttpResponseRedirect(reverse("gateway"))


def _show(request: PageRequest, *, refused: ProjectError | None = None) -> HttpResponse:
    project = scope.current_project(request)
    usable = usable_upstreams(project_id=project.id)
    wanted = request.GET.get("model", "").strip()
    problem = model_problem(wanted)
    recorded = distinct_values.values(project_id=project.id, column="model_key")
    example = _example(usable, recorded)
    if wanted and not problem:
        example = Example(model=wanted, is_blank=False)
    base = request.build_absolute_uri("/").rstrip("/")
    context = {
        "base": base,
        "key_variable": KEY_VARIABLE,
        "usable": usable,
        "example": example,
        "models": offered_models(usable, recorded),
        "wanted": wanted,
        "problem": problem,
        "clients": client_snippets.clients(base, example.model),
        "headers_in": gateway_facts.HEADERS_IN,
        "headers_out": gateway_facts.HEADERS_OUT,
        "endpoints": gateway_facts.ENDPOINTS,
        "modes": gateway_facts.MODES,
        # Asked for by the template, where the reader may see them.
        "knocks": wrong_addresses.latest,
        "refused": refused,
        "is_default_gone": _is_gone(project.default_upstream, usable),
    }
    status = 422 if refused else 400 if problem else 200
    return show(request, "pages/gateway.html", context, status=status)


def _is_gone(name: str, usable: Iterable[UpstreamInfo]) -> bool:
    return bool(name) and all(info.name != name for info in usable)


def _example(usable: Sequence[UpstreamInfo], recorded: Iterable[str]) -> Example:
    """A model that an upstream lists, else one that was called through it, else a blank."""
    offered = offered_models(usable, recorded)
    if offered:
        return Example(model=offered[0], is_blank=False)
    provider = usable[0].name if usable else "provider"
    return Example(model=f"{provider}/{_BLANK}", is_blank=True)
