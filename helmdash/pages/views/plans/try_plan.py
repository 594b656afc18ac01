"""Try a plan or a route: one form, and then the page of what it gave."""

from __future__ import annotations

from typing import Literal

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from helmdash import conf
from helmdash.core.access.permissions import Right, require
from helmdash.core.calls.completion import UnknownModel
from helmdash.core.catalog.catalog import CatalogError
from helmdash.operations.planning import Ask, AskProblem
from helmdash.pages import planning, scope
from helmdash.pages.forms.forms import PlanForm, RouteForm, catalog_faults
from helmdash.pages.lists.offered import offered_models, usable_upstreams
from helmdash.pages.plan_again import asked_variant
from helmdash.pages.planning import Trial
from helmdash.pages.render import PageRequest, show
from helmdash.queries import distinct_values, plans
from helmdash.queries.fitting import catalog
from helmdash.queries.plans import PlanView
from helmdash.upstream.sharing import Stopping

Kind = Literal["plan", "route"]

# The API's word for the field that is called otherwise here.
_FIELDS = {"user_intent": "intent"}
# Three actions around a pasted text: what small models fail at without a plan.
_EXAMPLES: dict[Kind, str] = {
    "plan": "Acme has released its new model M3 today. It reads 1 million tokens, writes code in "
    "forty languages, and costs half of what M2 did. The weights are open, and a paper with all "
    "benchmarks comes with them.\n\n"
    "Remember this, draft a blog post about it, and generate an illustration for the post.",
    "route": "Check the facts in my notes and add citations",
}


@require_http_methods(["GET", "HEAD", "POST"])
def try_plan(request: PageRequest) -> HttpResponse:
    """The form for a plan; a good one leads to the plan's page."""
    return _try(request, "plan")


@require_http_methods(["GET", "HEAD", "POST"])
def try_route(request: PageRequest) -> HttpResponse:
    """As `try_plan`, but asks for the one best entry."""
    return _try(request, "route")


def _try(request: PageRequest, kind: Kind) -> HttpResponse:
    request.now = timezone.now()
    is_sent = request.method == "POST"
    project = scope.current_project(request)
    if is_sent:
        require(scope.current_actor(request), Right.PLAN, project_id=project.id)
    shape = PlanForm if kind == "plan" else RouteForm
    like = None if is_sent else _like(request)
    form = shape(request.POST) if is_sent else shape(initial=_asked(request, kind, like))
    if is_sent and _is_sound(request, form):
        plan_id = _start(request, form, kind)
        if plan_id is not None:
            return _go_to(request, reverse("plan", args=[plan_id]))
    usable = usable_upstreams(project_id=project.id)
    recorded = distinct_values.values(project_id=project.id, column="model_key")
    context = {
        "form": form,
        "kind": kind,
        "detail": like,
        "action": reverse(f"try-{kind}"),
        "has_upstream": bool(usable),
        "models": list(dict.fromkeys([*offered_models(usable, recorded), *recorded])),
        "default_model": conf.env().default_model,
        "current": catalog.find(project_id=project.id),
        "example": f"{reverse(f'try-{kind}')}?{urlencode({'intent': _EXAMPLES[kind]})}",
    }
    return show(
        request,
        "pages/try_plan.html",
        context,
        fragment="pages/_try_plan.html",
        status=422 if is_sent else 200,
    )


def _is_sound(request: PageRequest, form: PlanForm) -> bool:
    """Check all that can be checked before anything is asked, so that all of it is said at once."""
    form.is_valid()
    project, model = scope.current_project(request), form.cleaned_data.get("model", "")
    try:
        planning.require_served(request, project, model.strip())
    except UnknownModel as error:
        form.add_error("model", str(error))
    return not form.errors


def _start(request: PageRequest, form: PlanForm, kind: Kind) -> str | None:
    """The plan's id; None when the form has been told what is wrong."""
    given = form.cleaned_data
    ask = Ask(
        kind=kind,
        user_intent=given["intent"],
        model=given["model"].strip() or None,
        context=given["context"],
        max_tokens=given["max_tokens"],
        catalog=given["catalog"],
        catalog_name=given["catalog_name"].strip() or None,
        prompt_variant=given.get("prompt_variant") or None,
        continues=given["continues"] or None,
    )
    trial = Trial(
        actor=scope.current_actor(request),
        project=scope.current_project(request),
        ask=ask,
        caller=f"page:{request.user.get_username()}"[:128],
    )
    try:
        return planning.start(request, trial)
    except AskProblem as problem:
        field = _FIELDS.get(problem.field, problem.field)
        form.add_error(field if field in form.fields else None, problem.message)
    except CatalogError as error:
        form.add_error("catalog", catalog_faults(error))
    except UnknownModel as error:
        form.add_error("model", str(error))
    except Stopping as error:
        form.add_error(None, str(error))
    return None


def _like(request: PageRequest) -> PlanView | None:
    """The plan that a link says to do again, or to go on with."""
    name = (request.GET.get("like", "") or request.GET.get("continues", "")).replace("\x00", "")
    if not name:
        return None
    project = scope.current_project(request)
    return plans.find(project_id=project.id, plan_id=name, now=request.now)


def _asked(request: PageRequest, kind: Kind, like: PlanView | None) -> dict[str, object]:
    """What a link brought along: values, or all that is known of a plan."""
    asked: dict[str, object] = {
        name: request.GET[name] for name in ("model", "intent") if name in request.GET
    }
    if like is None:
        return asked
    asked |= {
        "intent": like.item.intent or "",
        "model": like.item.model,
        "prompt_variant": asked_variant(like) or "",
        "catalog_name": like.catalog_name or "",
    }
    if not request.GET.get("like") and kind == "plan":
        # What a first try failed with is not tried again for the next step.
        variant = like.item.prompt_variant or ""
        asked |= {"continues": like.item.id, "prompt_variant": variant}
    return asked


def _go_to(request: PageRequest, address: str) -> HttpResponse:
    """A 303, or what htmx follows with the whole page."""
    if request.htmx:
        response = HttpResponse(status=204)
        response["HX-Redirect"] = address
        return response
    response = HttpResponse(status=303)
    response["Location"] = address
    return response
