"""What is learned of models, and the edits of budgets that it suggests."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, read_query
from helmdash.api.problems import Code, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import evidence as shapes
from helmdash.doors.bodies.fields import LARGEST
from helmdash.operations.evidence import deciding, trialling
from helmdash.queries.evidence import limits, suggestions
from helmdash.queries.evidence.net_value import net_report
from helmdash.queries.evidence.shortened import NetReport
from helmdash.queries.evidence.suggestions import SuggestionView

router = Router()
_TAG = "budgets"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")


@route(
    router,
    "GET",
    "/suggestions",
    tag=_TAG,
    scope="read",
    query=shapes.LIST_QUERY,
    answers={
        200: Answer(meaning="A page of suggestions.", shape=suggestions.SuggestionList),
        304: _SAME,
    },
)
def list_suggestions(request: HttpRequest) -> HttpResponse:
    """List edits of budgets that recorded calls suggest, newest first.

    Each with today's value, the suggested one, why, the method and its calls. A job makes them anew
    within minutes of new calls. `state` narrows the list.
    """
    query = read_query(request, shapes.LIST_QUERY)
    found = suggestions.page(
        project_id=access_of(request).project.id,
        state=query.get("state"),
        model=query.get("model") or None,
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    return read(request, found)


@route(
    router,
    "POST",
    "/suggestions/{int:suggestion_id}/accept",
    tag=_TAG,
    scope="budgets",
    once=Once(),
    may=(Code.NOT_FOUND, Code.CONFLICT),
    answers={200: Answer(meaning="The suggestion, accepted.", shape=SuggestionView)},
)
def accept_suggestion(request: HttpRequest, suggestion_id: int) -> HttpResponse:
    """Edit the budget as suggested.

    The model's row of the key's project is changed, or made beside the row of every project; its
    evidence tells why. It is an edit like any other, in the row's history. What it came to is
    measured in `effect`.
    """
    access = access_of(request)
    _require_plausible(suggestion_id)
    found = deciding.accept(
        actor=access.actor,
        project_id=access.project.id,
        suggestion_id=suggestion_id,
        now=timezone.now(),
    )
    return answer(found)


@route(
    router,
    "POST",
    "/suggestions/{int:suggestion_id}/dismiss",
    tag=_TAG,
    scope="budgets",
    once=Once(),
    body=shapes.DismissIn,
    body_examples={"with a reason": examples.DISMISSAL},
    may=(Code.NOT_FOUND, Code.CONFLICT),
    answers={200: Answer(meaning="The suggestion, dismissed.", shape=SuggestionView)},
)
def dismiss_suggestion(request: HttpRequest, suggestion_id: int) -> HttpResponse:
    """Leave the budget as it is.

    The suggestion comes back only when calls suggest something else.
    """
    reason = read_body(request, shapes.DISMISS)["reason"]
    access = access_of(request)
    _require_plausible(suggestion_id)
    found = deciding.dismiss(
        actor=access.actor,
        project_id=access.project.id,
        suggestion_id=suggestion_id,
        reason=reason,
        now=timezone.now(),
    )
    return answer(found)


@route(
    router,
    "POST",
    "/suggestions/{int:suggestion_id}/trial",
    tag=_TAG,
    scope="budgets",
    once=Once(),
    body=shapes.TrialIn,
    body_examples={"a fifth of 500 conversations": examples.TRIAL},
    may=(Code.NOT_FOUND, Code.CONFLICT),
    answers={200: Answer(meaning="The suggestion, on trial.", shape=SuggestionView)},
)
def try_suggestion(request: HttpRequest, suggestion_id: int) -> HttpResponse:
    """Try a suggested budget on a share of the model's conversations.

    Each conversation keeps its arm to the end; calls that name none stay with today's budget. What
    either arm comes to is counted each minute, and the trial ends by itself: when so many
    conversations or days are over, or when it is clearly worse. Then accept or dismiss.
    """
    given = read_body(request, shapes.TRIAL)
    access = access_of(request)
    _require_plausible(suggestion_id)
    share = given.get("share")
    found = trialling.begin(
        actor=access.actor,
        project_id=access.project.id,
        suggestion_id=suggestion_id,
        share=trialling.DEFAULT_SHARE if share is None else share,
        conversations=given.get("conversations"),
        days=given.get("days"),
        now=timezone.now(),
    )
    return answer(found)


@route(
    router,
    "GET",
    "/learned-limits",
    tag=_TAG,
    scope="read",
    query=shapes.LIMITS_QUERY,
    answers={
        200: Answer(meaning="What is learned.", shape=limits.LearnedLimits),
        304: _SAME,
    },
)
def get_learned_limits(request: HttpRequest) -> HttpResponse:
    """Read what recorded calls show of a model.

    Each figure of its budget with the method, how many calls it is from, its interval and the range
    of time; where calls are too few, how many are missing.
    """
    query = read_query(request, shapes.LIMITS_QUERY)
    found = limits.limits_of_model(
        project_id=access_of(request).project.id, model=query["model"], now=timezone.now()
    )
    return read(request, found)


@route(
    router,
    "GET",
    "/net-value",
    tag=_TAG,
    scope="read",
    query=shapes.NET_VALUE_QUERY,
    answers={
        200: Answer(meaning="What shortened prompts came to.", shape=NetReport),
        304: _SAME,
    },
)
def get_net_value(request: HttpRequest) -> HttpResponse:
    """Tell whether trimming pays.

    Trims, clears and clients' compactions of a range: tokens saved, what was paid anew for the lost
    cache, the net in tokens and USD, whether they came too early or too late, and whether the calls
    after them were clean. Sums hold what is known; `unknown` counts the rest. Each names its calls.
    """
    query = read_query(request, shapes.NET_VALUE_QUERY)
    found = net_report(
        project_id=access_of(request).project.id,
        since=query.get("since"),
        until=query.get("until"),
        model=query.get("model") or None,
        kind=query.get("kind"),
        limit=query.get("limit", 50),
    )
    return read(request, found)


def _require_plausible(suggestion_id: int) -> None:
    """No database can be asked for a number that its column cannot hold."""
    if suggestion_id > LARGEST:
        raise not_found("There is no suggestion with such a number.")
