"""Catalogs: import one's own, and read what is there."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from helmdash.api.auth import access_of
from helmdash.api.openapi import examples
from helmdash.api.parsing import read_json, read_query, unstorable
from helmdash.api.preconditions import changed, is_guarded, require_match
from helmdash.api.problems import Code, invalid, invalid_field, not_found
from helmdash.api.responding import answer, read
from helmdash.api.routes import Answer, route
from helmdash.api.schemas import fitting as shapes
from helmdash.core.catalog.catalog import parse_catalog
from helmdash.doors.bodies.catalogs import AnyCatalog
from helmdash.doors.bodies.fields import is_catalog_name
from helmdash.operations.fitting.catalogs import Imported, RevisedMeanwhile, import_catalog
from helmdash.queries.fitting import catalog as catalogs

router = Router()
_TAG = "catalogs"
_SAME = Answer(meaning="Nothing changed since the ETag of If-None-Match.")


@route(
    router,
    "GET",
    "/catalogs",
    tag=_TAG,
    scope="read",
    answers={
        200: Answer(meaning="The revisions.", shape=catalogs.CatalogList),
        304: _SAME,
    },
)
def list_catalogs(request: HttpRequest) -> HttpResponse:
    """List the imported catalogs, newest revision first."""
    found = catalogs.revisions(project_id=access_of(request).project.id)
    return read(request, found)


@route(
    router,
    "GET",
    "/catalogs/{name}",
    tag=_TAG,
    scope="read",
    may=(Code.NOT_FOUND,),
    answers={
        200: Answer(meaning="The newest revision.", shape=catalogs.CatalogDetail),
        304: _SAME,
    },
)
def get_catalog(request: HttpRequest, name: str) -> HttpResponse:
    """Read the newest revision of a catalog."""
    project = access_of(request).project
    found = catalogs.detail(project_id=project.id, name=name) if is_catalog_name(name) else None
    if found is None:
        raise not_found(f"The project {project.slug} has no catalog of this name.")
    return read(request, found, stamp=_stamp(found.info))


@route(
    router,
    "PUT",
    "/catalogs/{name}",
    tag=_TAG,
    # It changes what every fit of the project sees.
    scope="admin",
    body=AnyCatalog,
    body_examples={"two packs and a pipeline": examples.CATALOG},
    query=shapes.CATALOG_QUERY,
    is_guarded=True,
    answers={
        201: Answer(meaning="A new revision.", shape=Imported),
        200: Answer(meaning="The newest revision was the same already.", shape=Imported),
    },
)
def put_catalog(request: HttpRequest, name: str) -> HttpResponse:
    """Import a catalog.

    The body is the catalog. A changed one becomes a new revision; earlier ones stay.
    """
    query = read_query(request, shapes.CATALOG_QUERY)
    if not is_catalog_name(name):
        raise invalid_field("name", "must be 1 to 120 of the characters A-Z a-z 0-9 . _ -")
    body, is_suspect = read_json(request, exact=True)
    if is_suspect and (faults := unstorable(body)):
        raise invalid(faults)
    project_id = access_of(request).project.id
    seen = None
    if is_guarded(request):
        # What is wrong with the body is told first, as of any other edit.
        parse_catalog(body)
        seen = catalogs.find(project_id=project_id, name=name)
        require_match(request, _stamp(seen) if seen else None)
    try:
        found = import_catalog(
            actor=access_of(request).actor,
            project_id=project_id,
            name=name,
            body=body,
            now=timezone.now(),
            make_current=query.get("current", "true") == "true",
            after=seen.number if seen else None,
        )
    except RevisedMeanwhile:
        raise changed(request) from None
    return answer(found, status=201 if found.is_new else 200)


def _stamp(info: catalogs.CatalogInfo) -> object:
    return [info.name, info.number, info.digest]
