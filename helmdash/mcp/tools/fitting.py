"""`fit`: a catalog for a model's budget."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone

from helmdash.answers import members
from helmdash.doors.bodies.fits import FitIn, catalog_member, fit_arguments
from helmdash.mcp.arguments import ArgumentShape
from helmdash.mcp.problems import invalid_field
from helmdash.mcp.tools.base import Arguments, McpTool, arguments, free_object, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.fitting.fits import NoCatalog, fit_catalog

_FIT_IN = ArgumentShape(FitIn)


async def _fit(visit: Visit, given: Arguments, report: Report) -> Mapping[str, object]:
    return await visit.threads.run(_fit_now, visit, _FIT_IN.read(given))


def _fit_now(visit: Visit, given: FitIn) -> Mapping[str, object]:
    asked = fit_arguments(given)
    try:
        fitted = fit_catalog(
            **asked,
            actor=visit.caller.actor,
            project=visit.project,
            caller=visit.caller.name,
            now=timezone.now(),
        )
    except NoCatalog as error:
        raise invalid_field(catalog_member(asked["catalog_name"]), str(error)) from None
    return members(fitted)


FIT = McpTool(
    name="fit",
    description="Cut a tool catalog down to what a model can take for an intent. `compaction` "
    "says what was dropped. Without catalog or catalog_name: the project's current catalog.",
    schema=arguments(
        {
            "model": text("provider/model"),
            "intent": text("What the user wants"),
            "catalog": free_object('{"packs":[...],"pipelines":[...]}'),
            "catalog_name": text(),
            "context": free_object("Sent beside it, so counted"),
            "defaults": free_object("Sent beside it, so counted"),
            "history": {
                "type": "array",
                "description": 'Past plans: {"intent","tools":[id]}',
                "items": {"type": "object"},
            },
            "conversation": text(),
        },
        required=("model", "intent"),
    ),
    scope="fit",
    run=_fit,
)
