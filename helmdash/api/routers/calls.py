"""Calls: report one or many, read them back, export them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once, names_its_call, names_its_calls
from helmdash.api.list_queries import narrowing
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body, read_query
from helmdash.api.problems import Code, not_found
from helmdash.api.reporting import Report, read_many, read_single
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import calls as shapes
from helmdash.api.schemas import reports
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.doors.bodies.reports import CallIn
from helmdash.doors.streaming import stream
from helmdash.operations.recorder import recorder
from helmdash.operations.recorder.catching_up import wait_for_call, wait_for_conversation
from helmdash.operations.recording.call_batch import Recorded
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.terms import CALL_TERMS

router = Router()
_TAG = "calls"
_NDJSON = "application/x-ndjson"


@route(
    router,
    "POST",
    "/calls",
    tag=_TAG,
    scope="record",
    once=Once(unless=names_its_call),
    body=CallIn,
    body_examples={
        "openai": examples.CALL,
        "anthropic": examples.ANTHROPIC_CALL,
        "failed": examples.FAILED_CALL,
    },
    answers={
        201: Answer(meaning="Stored.", shape=Recorded),
        200: Answer(meaning="Known already: the first response.", shape=Recorded),
    },
)
def record_call(request: HttpRequest) -> HttpResponse:
    """Report one call.

    Answered after it is stored, with the level of its conversation and, if it gave nothing
    usable, the cause.
    """
    return _store(request, read_single)


@route(
    router,
    "POST",
    "/calls/batch",
    tag=_TAG,
    scope="record",
    once=Once(unless=names_its_calls),
    body=reports.BatchDoc,
    body_examples={"two calls": examples.BATCH},
    answers={200: Answer(meaning="What became of each call.", shape=shapes.BatchAnswer)},
)
def record_batch(request: HttpRequest) -> HttpResponse:
    """Report up to 1,000 calls.

    The good ones are stored in one transaction, also when others are rejected: those are listed
    with their place in the batch and their faults, and the status is still 200.
    """
    return _store(request, read_many)


@route(
    router,
    "POST",
    "/calls/reconcile",
    tag=_TAG,
    scope="read",
    body=reports.ReconcileIn,
    body_examples={"two ids": examples.RECONCILE},
    answers={200: Answer(meaning="Each id in one of the lists.", shape=shapes.Reconciled)},
)
def reconcile_calls(request: HttpRequest) -> HttpResponse:
    """Ask which ids are recorded.

    For a client that does not know whether its last reports arrived.
    """
    ids = list(dict.fromkeys(read_body(request, reports.RECONCILE)["ids"]))
    known = calls.stored_ids(project_id=access_of(request).project.id, ids=ids)
    body = shapes.Reconciled(
        stored=tuple(each for each in ids if each in known),
        missing=tuple(each for each in ids if each not in known),
    )
    return answer(body)


@route(
    router,
    "GET",
    "/calls",
    tag=_TAG,
    scope="read",
    query=shapes.LIST_QUERY,
    answers={
        200: Answer(meaning="A page of calls.", shape=call_listing.CallPage),
        304: Answer(meaning="Nothing changed since the ETag of If-None-Match."),
    },
)
def list_calls(request: HttpRequest) -> HttpResponse:
    """List calls, newest first.

    Every filter narrows the list; an empty one is left out. For a page of several filters at most
    20,000 calls are looked at: `next` may follow a page that is not full.
    """
    query = read_query(request, shapes.LIST_QUERY)
    project_id = access_of(request).project.id
    if conversation := query.get("conversation"):
        wait_for_conversation(project_id, conversation)
    found = call_listing.page(
        project_id=project_id,
        filters=_filters(query),
        cursor=query.get("cursor") or None,
        limit=query.get("limit", 50),
    )
    return read(request, found)


@route(
    router,
    "GET",
    "/calls/export",
    tag=_TAG,
    scope="read",
    query=shapes.EXPORT_QUERY,
    answers={
        200: Answer(meaning="One call as JSON on each line, oldest first.", content_type=_NDJSON)
    },
)
def export_calls(request: HttpRequest) -> StreamingHttpResponse:
    """Export calls as NDJSON.

    Takes the filters of the list. Streams, so it may be as long as it likes.
    """
    query = read_query(request, shapes.EXPORT_QUERY)
    found = call_listing.export(project_id=access_of(request).project.id, filters=_filters(query))
    lines: Iterator[bytes] = (dump_json(item) + b"\n" for item in found)
    response = stream(request, lines, content_type=_NDJSON)
    response["Content-Disposition"] = 'attachment; filename="calls.ndjson"'
    response["Cache-Control"] = "no-store"
    return response


@route(
    router,
    "GET",
    "/calls/{path:call_id}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="The call.", shape=calls.CallDetail),
        304: Answer(meaning="Nothing changed since the ETag of If-None-Match."),
    },
)
def get_call(request: HttpRequest, call_id: str) -> HttpResponse:
    """Read one call.

    With its raw usage, metadata, what was dropped, its earlier attempts, the other calls of its
    correlation id and, as far as the project keeps payloads, the texts.
    """
    project = access_of(request).project
    wait_for_call(project.id, call_id)
    found = calls.find(project_id=project.id, call_id=call_id)
    if found is None:
        raise not_found(f"No call of the project {project.slug} has this id.")
    return read(request, found)


def _store(request: HttpRequest, read: Callable[..., Report]) -> HttpResponse:
    access, now = access_of(request), timezone.now()
    report = read(request, access=access, at=now)
    recorded = recorder().record_and_wait(
        project=access.project,
        captures=report.captures,
        caller=access.name,
        now=now,
        size=report.size,
    )
    told = report.respond(recorded)
    return answer(told.value, status=told.status)


def _filters(query: Mapping[str, Any]) -> CallFilters:
    names = (
        "conversation",
        "model",
        "level",
        "cause",
        "finish_reason",
        "purpose",
        "pack",
        "client",
        "trial",
    )
    return CallFilters(
        **{name: query.get(name) or None for name in names},
        since=query.get("since"),
        until=query.get("until"),
        tokens_over=query.get("tokens_over"),
        **narrowing(query, CALL_TERMS.fields),
    )
