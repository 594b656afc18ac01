"""Planning: ask for a plan or a route."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from helmdash.api import planning
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body
from helmdash.api.problems import Code
from helmdash.api.responding import answer
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import planning as shapes
from helmdash.core.planning.answers import AnsweredPlan, AnsweredRoute
from helmdash.doors.bodies.asks import AskIn, to_ask

router = Router()
_TAG = "planning"
_ASYNC = "respond-async"
_ACCEPTED = Answer(
    meaning="Begun, where the request says `Prefer: respond-async`; `Location` is where to ask "
    "how far it is.",
    shape=shapes.Accepted,
    example=examples.ACCEPTED,
)


@route(
    router,
    "POST",
    "/plan",
    tag=_TAG,
    scope="plan",
    once=Once(),
    body=AskIn,
    body_examples={"current catalog": examples.PLAN, "one step more": examples.NEXT_STEP},
    may=(Code.PLAN_FAILED,),
    answers={
        200: Answer(meaning="The plan.", shape=AnsweredPlan, example=examples.PLAN_ANSWER),
        202: _ACCEPTED,
    },
)
def plan(request: HttpRequest) -> HttpResponse:
    """Turn what a user wants into steps of the catalog.

    The catalog is fitted to the model's budget, the model asked, its reply checked: every step
    is an entry of the catalog or says what is missing. What goes wrong is tried again in another
    way, three times at most; then the problem has the cause, and `attempts` every call.
    With `Prefer: respond-async` the response is 202 at once, and the plan is made meanwhile.
    """
    return _answer(request, "plan")


@route(
    router,
    "POST",
    "/route",
    tag=_TAG,
    scope="plan",
    once=Once(),
    body=AskIn,
    body_examples={"current catalog": examples.ROUTE},
    may=(Code.PLAN_FAILED,),
    answers={
        200: Answer(
            meaning="The entry that serves best.",
            shape=AnsweredRoute,
            example=examples.ROUTE_ANSWER,
        ),
        202: _ACCEPTED,
    },
)
def route_intent(request: HttpRequest) -> HttpResponse:
    """Find the one pack or pipeline that serves what a user wants.

    Where none does, the recommendation is `none` and `gap_warning` proposes a pack. Fitting,
    checking, further tries and `Prefer: respond-async` are as for plans.
    """
    return _answer(request, "route")


def _answer(request: HttpRequest, kind: Literal["plan", "route"]) -> HttpResponse:
    ask = to_ask(kind, read_body(request, shapes.ASK, exact=True))
    plan_id = planning.begin(request, ask) if _prefers_async(request) else None
    if plan_id is not None:
        return _accepted(plan_id)
    return answer(planning.make(request, ask).body)


def _prefers_async(request: HttpRequest) -> bool:
    """RFC 7240: preferences are separated by commas, parameters by semicolons."""
    given = request.headers.get("Prefer", "").split(",")
    return any(each.partition(";")[0].strip().lower() == _ASYNC for each in given)


def _accepted(plan_id: str) -> HttpResponse:
    response = answer(shapes.Accepted(plan_id=plan_id, status="running", progress=0), status=202)
    response["Location"] = reverse("api:get_plan", args=[plan_id])
    response["Preference-Applied"] = _ASYNC
    return response
