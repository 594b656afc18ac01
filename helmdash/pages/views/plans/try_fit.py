"""Try a fit: what a model would be shown of a catalog for an intent."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from helmdash.answers import to_json
from helmdash.core.access.permissions import Right, require
from helmdash.core.catalog.catalog import CatalogError
from helmdash.operations.fitting.fits import Fitted, NoCatalog, fit_catalog
from helmdash.pages import scope
from helmdash.pages.forms.forms import FitForm, catalog_faults
from helmdash.pages.render import PageRequest, show
from helmdash.queries import distinct_values
from helmdash.queries.fitting import catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedFit:
    """A fit made on this page, in the shape the stored ones have."""

    id: str
    model: str
    before_bytes: int
    after_bytes: int
    fits: bool
    trim: object


@require_http_methods(["GET", "HEAD", "POST"])
def try_fit(request: PageRequest) -> HttpResponse:
    """The form, and under it what the fit gave. What was typed stays, whatever is wrong with it."""
    request.now = timezone.now()
    project = scope.current_project(request)
    if request.method == "POST":
        require(scope.current_actor(request), Right.FIT, project_id=project.id)
    form = FitForm(request.POST) if request.method == "POST" else FitForm(initial=_asked(request))
    context: dict[str, object] = {"form": form}
    if form.is_bound and form.is_valid():
        fitted = _fit(request, form)
        if fitted is not None:
            context |= {"fitted": fitted, "fit": _tried(fitted)}
    context["current"] = catalog.find(project_id=project.id)
    context["models"] = distinct_values.values(project_id=project.id, column="model_key")
    is_wrong = form.is_bound and not form.is_valid()
    return show(
        request,
        "pages/try_fit.html",
        context,
        fragment="pages/_try_fit.html",
        status=422 if is_wrong else 200,
    )


def _fit(request: PageRequest, form: FitForm) -> Fitted | None:
    try:
        return fit_catalog(
            actor=scope.current_actor(request),
            project=scope.current_project(request),
            model=form.cleaned_data["model"],
            intent=form.cleaned_data["intent"],
            catalog=form.cleaned_data["catalog"],
            catalog_name=None,
            context=None,
            defaults=None,
            history=(),
            caller=f"page:{request.user.get_username()}"[:128],
            now=request.now,
        )
    except CatalogError as error:
        form.add_error("catalog", catalog_faults(error))
    except NoCatalog:
        form.add_error("catalog", "paste a catalog: this project has none in force")
    return None


def _tried(fitted: Fitted) -> TriedFit:
    return TriedFit(
        id=fitted.fit_id,
        model=fitted.budget.model,
        before_bytes=fitted.trim.before_bytes,
        after_bytes=fitted.trim.after_bytes,
        fits=fitted.trim.fits,
        trim=to_json(fitted.trim),
    )


def _asked(request: PageRequest) -> dict[str, str]:
    """Values a link brought along."""
    return {name: request.GET[name] for name in ("model", "intent") if name in request.GET}
