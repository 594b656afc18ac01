"""Fitting, ranking, decoding, and the catalogs they work on."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY
from helmdash.api.parsing import Shape
from helmdash.doors.bodies.catalogs import OptionalCatalog
from helmdash.doors.bodies.fields import STRICT, CatalogName, FreeObject, Intent, Word64
from helmdash.doors.bodies.fits import FitIn, History


class RankIn(TypedDict, total=False):
    """A catalog to put in the order of an intent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    intent: Required[Intent]
    catalog: OptionalCatalog
    catalog_name: CatalogName | None
    history: History | None


class DecodeIn(TypedDict, total=False):
    """The text of a reply in which JSON was due."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    raw: Required[str]
    finish_reason: Word64 | None
    schema: Annotated[
        FreeObject | None,
        Field(description="JSON Schema 2020-12, without remote references: what to accept."),
    ]


FIT = Shape(FitIn)
RANK = Shape(RankIn)
DECODE = Shape(DecodeIn)


class CatalogQuery(TypedDict, total=False):
    """How a catalog is imported."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    current: Annotated[
        Literal["true", "false"],
        Field(description="Whether fits that name no catalog use this one from now on (default)."),
    ]


CATALOG_QUERY = Shape(CatalogQuery)
