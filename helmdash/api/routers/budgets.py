"""Budgets: the table, its explanation, and its editing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, read_query
from helmdash.api.preconditions import changed, is_guarded, require_match
from helmdash.api.problems import Code, invalid_field, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import budgets as shapes
from helmdash.core.budgets.budgets import Resolution
from helmdash.doors.bodies.fields import LARGEST
from helmdash.operations.budgets import editing
from helmdash.operations.budgets.editing import EditedMeanwhile
from helmdash.queries import preflight
from helmdash.queries.budgets import budgets
from helmdash.queries.budgets.budgets import BudgetRow

router = Router()
_TAG = "budgets"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")


@route(
    router,
    "GET",
    "/budgets",
    tag=_TAG,
    scope=None,
    query=shapes.LIST_QUERY,
    answers={200: Answer(meaning="A page of rows.", shape=budgets.BudgetList), 304: _SAME},
)
def list_budgets(request: HttpRequest) -> HttpResponse:
    """List budget rows, in table order.

    The global rows and those of the key's project.
    """
    query = read_query(request, shapes.LIST_QUERY)
    found = budgets.page(
        project_id=access_of(request).project.id,
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    return read(request, found)


@route(
    router,
    "POST",
    "/budgets",
    tag=_TAG,
    scope="budgets",
    once=Once(),
    body=shapes.BudgetIn,
    body_examples={"a new model": examples.BUDGET},
    may=(Code.CONFLICT,),
    answers={201: Answer(meaning="The new row.", shape=BudgetRow)},
)
def create_budget(request: HttpRequest) -> HttpResponse:
    """Add a budget.

    It rules the very next fit and call. `x-helmdash-note` says where the conversations of now would
    not fit a fallback that it names. Without `project` it is the key's own project's. One with
    `project: null` holds for every project, and takes a key of the default project with the scope
    `admin`.
    """
    values = read_body(request, shapes.CREATE)
    access = access_of(request)
    slug = values.pop("project", access.project.slug)
    if slug and slug != access.project.slug:
        raise invalid_field(
            "project", f"must be null or the key's own project, {access.project.slug}"
        )
    row = editing.create_budget(
        actor=access.actor, values=values, project_id=access.project.id if slug else None
    )
    response = answer(row, status=201, is_whole=True)
    response["Location"] = f"{request.path}/{row.id}"
    return _noted(request, row, values, response)


@route(
    router,
    "GET",
    "/budgets/resolve",
    tag=_TAG,
    scope=None,
    query=shapes.RESOLVE_QUERY,
    answers={
        200: Answer(meaning="The budget and why it is that one.", shape=Resolution),
        304: _SAME,
    },
)
def resolve_budget(request: HttpRequest) -> HttpResponse:
    """Explain which budget governs a model.

    Every rule that could have applied, which one won and why, and the effective figures.
    """
    query = read_query(request, shapes.RESOLVE_QUERY)
    found = budgets.resolve(project_id=access_of(request).project.id, model=query["model"])
    return read(request, found)


@route(
    router,
    "GET",
    "/preflight",
    tag=_TAG,
    scope="read",
    answers={
        200: Answer(meaning="Each way that they may have to go.", shape=preflight.Preflights),
        304: _SAME,
    },
)
def get_preflight(request: HttpRequest) -> HttpResponse:
    """Tell whether the conversations of now would fit where they may have to go.

    For each fallback that a budget names, and for the other models of an upstream that lists
    several: how many conversations of the last hour would fit there, be at caution or critical, or
    be too long. Prompts are counted by the model that they were sent to.
    """
    found = preflight.preflights(project_id=access_of(request).project.id, now=timezone.now())
    return read(request, found)


@route(
    router,
    "GET",
    "/context-budgets",
    tag=_TAG,
    scope=None,
    answers={
        200: Answer(meaning="All enabled rules.", shape=budgets.ContextBudgets),
        304: _SAME,
    },
)
def get_context_budgets(request: HttpRequest) -> HttpResponse:
    """Read all effective budgets at once.

    As the MCP resource `helmdeck://context-budgets`: the fallback, each rule in table order, the
    policy.
    """
    found = budgets.context_budgets(project_id=access_of(request).project.id, now=timezone.now())
    # `fetched_at` differs each time and is no change.
    return read(request, found, stamp=[found.fallback, found.budgets, found.policy])


@route(
    router,
    "GET",
    "/budgets/{int:budget_id}",
    tag=_TAG,
    scope=None,
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="The row.", shape=BudgetRow), 304: _SAME},
)
def get_budget(request: HttpRequest, budget_id: int) -> HttpResponse:
    """Read one budget row."""
    return read(request, _row(request, budget_id))


@route(
    router,
    "PATCH",
    "/budgets/{int:budget_id}",
    tag=_TAG,
    scope="budgets",
    body=shapes.BudgetPatch,
    body_examples={"a smaller catalog": examples.BUDGET_CHANGE},
    may=(Code.NOT_FOUND, Code.CONFLICT),
    is_guarded=True,
    answers={200: Answer(meaning="The row as it is now.", shape=BudgetRow)},
)
def change_budget(request: HttpRequest, budget_id: int) -> HttpResponse:
    """Change members of a budget.

    Those left out stay. A row of every project takes a key of the default project with the scope
    `admin`. The edit is kept in the row's history under the key's name. The fallback
    keeps its empty key and stays enabled.
    """
    changes = read_body(request, shapes.PATCH)
    access = access_of(request)
    _require_plausible(budget_id)
    seen_at = _seen_at(request, budget_id)
    try:
        row = editing.change_budget(
            actor=access.actor,
            budget_id=budget_id,
            project_id=access.project.id,
            changes=changes,
            seen_at=seen_at,
        )
    except EditedMeanwhile:
        raise changed(request) from None
    return _noted(request, row, changes, answer(row, is_whole=True))


@route(
    router,
    "DELETE",
    "/budgets/{int:budget_id}",
    tag=_TAG,
    scope="budgets",
    may=(Code.NOT_FOUND, Code.CONFLICT),
    is_guarded=True,
    answers={204: Answer(meaning="The row is gone.")},
)
def delete_budget(request: HttpRequest, budget_id: int) -> HttpResponse:
    """Delete a budget.

    Its models fall to the next best row. A row of every project takes a key of the default project
    with the scope `admin`. The fallback cannot be deleted.
    """
    access = access_of(request)
    _require_plausible(budget_id)
    seen_at = _seen_at(request, budget_id)
    try:
        editing.delete_budget(
            actor=access.actor,
            budget_id=budget_id,
            project_id=access.project.id,
            seen_at=seen_at,
        )
    except EditedMeanwhile:
        raise changed(request) from None
    return HttpResponse(status=204)


def _seen_at(request: HttpRequest, budget_id: int) -> datetime | None:
    """When the row that the client has seen was edited last; None: it does not say what it has
    seen. Raises Problem (412) where it has seen another."""
    if not is_guarded(request):
        return None
    row = _row(request, budget_id)
    require_match(request, row)
    return row.updated_at


def _noted(
    request: HttpRequest, row: BudgetRow, edited: Mapping[str, object], response: HttpResponse
) -> HttpResponse:
    """The answer; where the conversations of now would not fit the fallback that was just named, it
    says so in `x-helmdash-note`."""
    if edited.get("fallback_model"):
        found = preflight.fallback_preflights(
            project_id=access_of(request).project.id, now=timezone.now()
        )
        said = preflight.warnings_of(found, [row.budget.key])
        if said:
            response["x-helmdash-note"] = said[0].encode("ascii", "replace").decode()
    return response


def _row(request: HttpRequest, budget_id: int) -> BudgetRow:
    _require_plausible(budget_id)
    row = budgets.find(project_id=access_of(request).project.id, budget_id=budget_id)
    if row is None:
        raise not_found(f"There is no budget {budget_id}.")
    return row


def _require_plausible(budget_id: int) -> None:
    """No database can be asked for a number that its column cannot hold."""
    if budget_id > LARGEST:
        raise not_found("There is no budget with such a number.")
