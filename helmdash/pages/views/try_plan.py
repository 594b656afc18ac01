"""Try a plan or a route: one form, and then the page of what it gave."""

from __future__ import annotations

from typing import Literal

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from helmdash import conf
from helmdash.core.catalog import CatalogError
from helmdash.core.completion import UnknownModel
from helmdash.operations.planning import Ask, AskProblem
from helmdash.pages import planning, scope
from helmdash.pages.forms import PlanForm
from helmdash.pages.offered import offered_models, usable_upstreams
from helmdash.pages.planning import Trial
from helmdash.pages.render import PageRequest, show
from helmdash.queries import catalog, plans, seen
from helmdash.upstream.sharing import Stopping

Kind = Literal["plan", "route"]

# So many faults of a catalog are shown; whoever has more fixes these first.
_FAULTS_SHOWN = 8
# The API's word for the field that is called otherwise here.
_FIELDS = {"user_intent": "intent", "catalog_name": "catalog"}
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
    """The form for a route."""
    return _try(request, "route")


def _try(request: PageRequest, kind: Kind) -> HttpResponse:
    request.now = timezone.now()
    is_sent = request.method == "POST"
    form = PlanForm(request.POST) if is_sent else PlanForm(initial=_asked(request, kind))
    if is_sent and form.is_valid():
        plan_id = _start(request, form, kind)
        if plan_id is not None:
            return _go_to(request, reverse("plan", args=[plan_id]))
    project = scope.current_project(request)
    usable = usable_upstreams(project_id=project.id)
    recorded = seen.values(project_id=project.id, column="model")
    context = {
        "form": form,
        "kind": kind,
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
        prompt_variant=given["prompt_variant"] or None,
        continues=given["continues"] or None,
    )
    trial = Trial(
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
        for fault in error.errors[:_FAULTS_SHOWN]:
            form.add_error("catalog", f"{fault.field}: {fault.message}")
    except UnknownModel as error:
        form.add_error("model", str(error))
    except Stopping as error:
        form.add_error(None, str(error))
    return None


def _asked(request: PageRequest, kind: Kind) -> dict[str, object]:
    """What a link brought along: values, or a plan to do again or to go on with."""
    asked: dict[str, object] = {
        name: request.GET[name] for name in ("model", "intent") if name in request.GET
    }
    continues = request.GET.get("continues", "")
    like = (request.GET.get("like", "") or continues).replace("\x00", "")
    found = like and plans.find(
        project_id=scope.current_project(request).id, plan_id=like, now=request.now
    )
    if found:
        asked |= {"intent": found.item.intent or "", "model": found.item.model}
        if continues and kind == "plan":
            asked |= {"continues": like, "prompt_variant": found.item.prompt_variant or ""}
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
