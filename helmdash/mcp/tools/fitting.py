"""`fit`: a catalog for a model's budget."""

from __future__ import annotations

from typing import Annotated, Any, Required

from django.utils import timezone
from pydantic import Field
from typing_extensions import TypedDict

from helmdash.core.ranking import PastPlan
from helmdash.mcp import render
from helmdash.mcp.arguments import STRICT, CatalogName, FreeObject, Intent, ModelId, Shape
from helmdash.mcp.problems import invalid_field
from helmdash.mcp.tools.base import Arguments, Tool, arguments, free_object, text
from helmdash.mcp.visit import Report, Visit
from helmdash.operations.fitting import NoCatalog, fit_catalog


class Past(TypedDict):
    """An earlier intent and the entries that served it."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    intent: str
    tools: Annotated[list[str], Field(max_length=1000)]


class FitIn(TypedDict, total=False):
    """The body of POST /fit."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    model: Required[ModelId]
    intent: Required[Intent]
    catalog: Any  # core.catalog checks it, so that its faults have the same words everywhere
    catalog_name: CatalogName | None
    context: FreeObject | None
    defaults: FreeObject | None
    history: Annotated[list[Past], Field(max_length=1000)] | None


_FIT_IN = Shape(FitIn)


async def _fit(visit: Visit, given: Arguments, report: Report) -> render.Body:
    return await visit.threads.run(_fit_now, visit, _FIT_IN.read(given))


def _fit_now(visit: Visit, given: FitIn) -> render.Body:
    name = given.get("catalog_name")
    try:
        fitted = fit_catalog(
            project=visit.project,
            model=given["model"],
            intent=given["intent"],
            catalog=given.get("catalog"),
            catalog_name=name,
            context=given.get("context"),
            defaults=given.get("defaults"),
            history=[
                PastPlan(intent=past["intent"], tools=tuple(past["tools"]))
                for past in given.get("history") or ()
            ],
            caller=visit.caller.name,
            now=timezone.now(),
        )
    except NoCatalog as error:
        raise invalid_field("catalog_name" if name else "catalog", str(error)) from None
    return render.fitted(fitted)


FIT = Tool(
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
        },
        required=("model", "intent"),
    ),
    scope="fit",
    run=_fit,
)
