"""What-ifs: edits of budgets, tried on recorded calls and fits."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, read_query
from helmdash.api.problems import Code, invalid_field, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import whatif as shapes
from helmdash.operations.whatif import asking
from helmdash.queries.whatif import items, what_ifs
from helmdash.queries.whatif.what_ifs import WhatIfView

router = Router()
_TAG = "budgets"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")


@route(
    router,
    "GET",
    "/what-ifs",
    tag=_TAG,
    scope="read",
    query=shapes.LIST_QUERY,
    answers={200: Answer(meaning="A page of what-ifs.", shape=what_ifs.WhatIfList), 304: _SAME},
)
def list_what_ifs(request: HttpRequest) -> HttpResponse:
    """List edits of budgets that were tried, newest first.

    The last hundred that ended are kept.
    """
    query = read_query(request, shapes.LIST_QUERY)
    found = what_ifs.page(
        project_id=access_of(request).project.id,
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 20),
    )
    return read(request, found)


@route(
    router,
    "POST",
    "/what-ifs",
    tag=_TAG,
    scope="fit",
    once=Once(),
    body=shapes.WhatIfIn,
    body_examples={"half the input": examples.WHAT_IF},
    may=(Code.CONFLICT,),
    answers={201: Answer(meaning="The what-if, which waits for a server.", shape=WhatIfView)},
)
def ask_what_if(request: HttpRequest) -> HttpResponse:
    """Try edits of budgets on recorded calls and fits.

    No budget changes. A server judges the calls of the range anew by the code that recording uses,
    and makes its fits anew to the byte where intent and catalog are kept; `progress` says how far
    it is. At most the newest 1,000,000 calls and 20,000 fits; five may wait at a time.
    """
    given = read_body(request, shapes.ASK)
    access = access_of(request)
    found = asking.ask(
        actor=access.actor,
        project_id=access.project.id,
        edits=given["edits"],
        title=given.get("title", ""),
        since=given.get("since"),
        until=given.get("until"),
        is_whole="since" in given,
        now=timezone.now(),
    )
    response = answer(found, status=201)
    response["Location"] = f"{request.path}/{found.id}"
    return response


@route(
    router,
    "GET",
    "/what-ifs/{what_if_id}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="The what-if, as far as it is.", shape=WhatIfView), 304: _SAME},
)
def get_what_if(request: HttpRequest, what_if_id: str) -> HttpResponse:
    """Read what edits of budgets would have come to."""
    found = what_ifs.find(project_id=access_of(request).project.id, name=what_if_id)
    if found is None:
        raise not_found(f"There is no what-if {what_if_id}.")
    return read(request, found)


@route(
    router,
    "GET",
    "/what-ifs/{what_if_id}/items",
    tag=_TAG,
    scope="read",
    query=shapes.ITEMS_QUERY,
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="A page of calls or fits.", shape=items.WhatIfItems),
        304: _SAME,
    },
)
def list_what_if_items(request: HttpRequest, what_if_id: str) -> HttpResponse:
    """List the calls or fits that one figure counts.

    They are judged again by the budgets that the what-if keeps. A page looks through 20,000 calls
    or 100 fits at most, so it may have no item and a `next` all the same.
    """
    query = read_query(request, shapes.ITEMS_QUERY)
    row = what_ifs.find_row(project_id=access_of(request).project.id, name=what_if_id)
    if row is None:
        raise not_found(f"There is no what-if {what_if_id}.")
    try:
        found = items.items_of(
            row,
            query["figure"],
            model=query.get("model", ""),
            cursor=query.get("cursor") or None,
            limit=query.get("limit", 50),
        )
    except items.UnknownFigure as error:
        raise invalid_field("figure", str(error)) from None
    except items.NotByModel as error:
        raise invalid_field("model", str(error)) from None
    return read(request, found)


@route(
    router,
    "POST",
    "/what-ifs/{what_if_id}/cancel",
    tag=_TAG,
    scope="fit",
    once=Once(),
    may=(Code.NOT_FOUND,),
    answers={200: Answer(meaning="The what-if, with what it has counted.", shape=WhatIfView)},
)
def cancel_what_if(request: HttpRequest, what_if_id: str) -> HttpResponse:
    """End a what-if that waits or runs.

    Nothing for one that has ended.
    """
    access = access_of(request)
    found = asking.cancel(
        actor=access.actor,
        project_id=access.project.id,
        name=what_if_id,
        now=timezone.now(),
    )
    return answer(found)


@route(
    router,
    "POST",
    "/what-ifs/{what_if_id}/apply",
    tag=_TAG,
    scope="budgets",
    once=Once(),
    may=(Code.NOT_FOUND, Code.CONFLICT),
    answers={200: Answer(meaning="The what-if, applied.", shape=WhatIfView)},
)
def apply_what_if(request: HttpRequest, what_if_id: str) -> HttpResponse:
    """Make the edits of a what-if.

    Rows of the key's project are changed, or made beside those of every project; all or none. A
    conflict where somebody has edited one of these figures since it was asked.
    """
    access = access_of(request)
    found = asking.apply(
        actor=access.actor,
        project_id=access.project.id,
        name=what_if_id,
        now=timezone.now(),
    )
    return answer(found)
