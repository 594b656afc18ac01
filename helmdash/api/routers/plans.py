"""Plan history: the list, one plan, what came of it, and a caller's own."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.answers import members
from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.list_queries import narrowing
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, read_query
from helmdash.api.problems import Code, Problem, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import plans as shapes
from helmdash.operations.planning.feedback import NoSuchPlan, note_followed
from helmdash.queries import plans
from helmdash.queries.plans import defaults
from helmdash.queries.plans.defaults import MyDefaults
from helmdash.queries.plans.filters import PLAN_TERMS

router = Router()
_TAG = "planning"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")
# It differs each time and is no change.
_CLOCK = "fetched_at"


@route(
    router,
    "GET",
    "/plans",
    tag=_TAG,
    scope="read",
    query=shapes.LIST_QUERY,
    answers={200: Answer(meaning="A page of plans.", shape=plans.PlanList), 304: _SAME},
)
def list_plans(request: HttpRequest) -> HttpResponse:
    """List plans and routes, newest first.

    Every filter narrows the list; an empty one is left out. A project that keeps no texts shows
    `intent_sha` in the place of the intent.
    """
    query = read_query(request, shapes.LIST_QUERY)
    found = plans.page(
        project_id=access_of(request).project.id,
        now=timezone.now(),
        model=query.get("model") or None,
        variant=query.get("variant"),
        outcome=query.get("outcome"),
        kind=query.get("kind"),
        tool=query.get("tool") or None,
        caller=query.get("caller") or None,
        **narrowing(query, PLAN_TERMS.fields),
        since=query.get("since"),
        until=query.get("until"),
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    return read(request, found)


@route(
    router,
    "GET",
    "/plans/{plan_id}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="The plan.", shape=plans.PlanDetail), 304: _SAME},
)
def get_plan(request: HttpRequest, plan_id: str) -> HttpResponse:
    """Read one plan.

    `status` and `progress` tell how far one is that is made in the background; `plan` is its
    answer. With every step, every call that was made for it, what was cut from the catalog and
    what was left, and the plans for like intents.
    """
    project = access_of(request).project
    now = timezone.now()
    found = plans.find_detail(project_id=project.id, plan_id=plan_id, now=now)
    if found is None:
        raise _unknown(project.slug)
    return read(request, found)


@route(
    router,
    "POST",
    "/plans/{plan_id}/feedback",
    tag=_TAG,
    scope="record",
    once=Once(),
    body=shapes.FeedbackIn,
    body_examples={"carried out": examples.FEEDBACK},
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="Noted.", shape=shapes.Feedback)},
)
def record_feedback(request: HttpRequest, plan_id: str) -> HttpResponse:
    """Tell whether a plan was carried out.

    Later plans for like intents learn from those that were, and no more from those that were not.
    What is said last holds.
    """
    followed = read_body(request, shapes.FEEDBACK)["followed"]
    project = access_of(request).project
    try:
        note_followed(
            actor=access_of(request).actor, project=project, plan_id=plan_id, followed=followed
        )
    except NoSuchPlan:
        raise _unknown(project.slug) from None
    return answer(shapes.Feedback(id=plan_id, followed=followed))


@route(
    router,
    "GET",
    "/my-plans",
    tag=_TAG,
    scope="read",
    answers={200: Answer(meaning="The caller's plans.", shape=plans.MyPlans), 304: _SAME},
)
def get_my_plans(request: HttpRequest) -> HttpResponse:
    """Read what the caller has planned lately.

    As the MCP resource `helmdeck://my-plans`: the plans of the last 30 days in groups of the same
    intent, the most frequent first. The caller is the name of the key.
    """
    access = access_of(request)
    found = plans.my_plans(project_id=access.project.id, caller=access.name, now=timezone.now())
    return _mine(request, found)


@route(
    router,
    "GET",
    "/my-defaults",
    tag=_TAG,
    scope="read",
    answers={200: Answer(meaning="The caller's habits.", shape=MyDefaults), 304: _SAME},
)
def get_my_defaults(request: HttpRequest) -> HttpResponse:
    """Read what the caller usually does.

    As the MCP resource `helmdeck://my-defaults`: the packs and pipelines its plans and calls use
    most, with the inputs it prefers. The caller is the name of the key.
    """
    access = access_of(request)
    now = timezone.now()
    found = defaults.caller_defaults(project_id=access.project.id, caller=access.name, now=now)
    return _mine(request, found.told(now))


def _mine(request: HttpRequest, found: plans.MyPlans | MyDefaults) -> HttpResponse:
    stamp = {name: value for name, value in members(found).items() if name != _CLOCK}
    return read(request, found, stamp=stamp)


def _unknown(project: str) -> Problem:
    return not_found(f"No plan of the project {project} has this id.")
