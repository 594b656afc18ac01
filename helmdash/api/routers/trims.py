"""Recorded fits: what was cut, for whom, and by which budget."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.list_queries import narrowing
from helmdash.api.parsing import read_query
from helmdash.api.responding import read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import trims as shapes
from helmdash.queries.fitting import trims
from helmdash.queries.fitting.trim_filters import TRIM_FIELDS, TrimFilters

router = Router()


@route(
    router,
    "GET",
    "/trims",
    tag="fitting",
    scope="read",
    query=shapes.LIST_QUERY,
    answers={
        200: Answer(meaning="A page of fits.", shape=shapes.TrimList),
        304: Answer(meaning="Nothing changed since the ETag of If-None-Match."),
    },
)
def list_trims(request: HttpRequest) -> HttpResponse:
    """List recorded fits with their Trims, newest first.

    Every filter narrows the list; an empty one is left out. A page looks at 2,000 fits at most, and
    may then hold less than asked for while there are more.
    """
    query = read_query(request, shapes.LIST_QUERY)
    given: dict[str, Any] = {
        name: query.get(name) or None for name in ("model", "client", "catalog", "cut", "outcome")
    }
    found = trims.page(
        project_id=access_of(request).project.id,
        filters=TrimFilters(
            **given,
            since=query.get("since"),
            until=query.get("until"),
            **narrowing(query, TRIM_FIELDS),
        ),
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
        has_figures=False,
    )
    return read(request, shapes.TrimList(items=found.items, next=found.next))
