"""Fitting: a catalog for a model's budget, its ranking, and the JSON in a reply."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.acceptance import acceptor
from helmdash.api.auth import access_of
from helmdash.api.idempotency import Once
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_body
from helmdash.api.problems import Code, invalid_field, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import fitting as shapes
from helmdash.core.calls.finish import normalise_finish_reason
from helmdash.core.decoding.decoding import Decoded, decode
from helmdash.doors.bodies.fits import FitIn, catalog_member, fit_arguments, past_plans
from helmdash.operations.fitting.fits import Fitted, NoCatalog, fit_catalog
from helmdash.queries.fitting.fit_uses import RecordedFit, recorded_fit
from helmdash.queries.fitting.ranking import RankedList, UnknownCatalog, rank_catalog

router = Router()
_TAG = "fitting"


@route(
    router,
    "POST",
    "/fit",
    tag=_TAG,
    scope="fit",
    once=Once(),
    body=FitIn,
    body_examples={"inline catalog": examples.FIT},
    answers={200: Answer(meaning="The catalog to send, and its receipt.", shape=Fitted)},
)
def fit(request: HttpRequest) -> HttpResponse:
    """Fit a catalog to a model's budget.

    Everything that will be sent is counted. `compaction` says what was dropped and who stays;
    `fits` is false only when not even one bare entry has room.
    """
    given = read_body(request, shapes.FIT, exact=True)
    access = access_of(request)
    asked = fit_arguments(given)
    try:
        fitted = fit_catalog(
            **asked,
            actor=access.actor,
            project=access.project,
            caller=access.name,
            now=timezone.now(),
        )
    except NoCatalog as error:
        raise invalid_field(catalog_member(asked["catalog_name"]), str(error)) from None
    return answer(fitted)


@route(
    router,
    "GET",
    "/fits/{fit_id}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="The fit, its receipt, and what it came to.", shape=RecordedFit),
        304: Answer(meaning="Nothing changed since the ETag of If-None-Match."),
    },
)
def get_fit(request: HttpRequest, fit_id: str) -> HttpResponse:
    """Read a stored fit: its Trim, and whether it paid.

    For each call that named it: tokens saved, what the provider's cache lost, and the net.
    """
    project_id = access_of(request).project.id
    found = recorded_fit(project_id=project_id, fit_id=fit_id)
    if found is None:
        raise not_found("There is no fit with this id.")
    return read(request, found)


@route(
    router,
    "POST",
    "/rank",
    tag=_TAG,
    scope="fit",
    body=shapes.RankIn,
    body_examples={"inline catalog": examples.RANK},
    answers={200: Answer(meaning="Every entry, best first.", shape=RankedList)},
)
def rank(request: HttpRequest) -> HttpResponse:
    """Rank a catalog for an intent.

    `lexical` is the likeness of the words, `history` what past plans add.
    """
    given = read_body(request, shapes.RANK, exact=True)
    name = given.get("catalog_name")
    try:
        found = rank_catalog(
            project_id=access_of(request).project.id,
            intent=given["intent"],
            catalog=given.get("catalog"),
            catalog_name=name,
            history=past_plans(given.get("history")),
        )
    except UnknownCatalog as error:
        raise invalid_field(catalog_member(name), str(error)) from None
    return answer(found)


@route(
    router,
    "POST",
    "/decode",
    tag=_TAG,
    scope="fit",
    body=shapes.DecodeIn,
    body_examples={"thinking and a fence": examples.DECODE},
    may=(Code.UNDECODABLE,),
    answers={200: Answer(meaning="The value, and how it was found.", shape=Decoded)},
)
def decode_reply(request: HttpRequest) -> HttpResponse:
    """Find the JSON in a model's reply.

    Reasoning and fences are stripped, then the first value is taken, else the last object that
    the schema accepts, else the text is repaired. `partial`: the end was missing.
    """
    given = read_body(request, shapes.DECODE)
    found = decode(
        given["raw"],
        finish_reason=normalise_finish_reason(given.get("finish_reason")),
        accepts=acceptor(given.get("schema")),
    )
    return answer(found)
