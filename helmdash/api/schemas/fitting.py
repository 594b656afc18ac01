"""Fitting, ranking, decoding, and the catalogs they work on."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.fields import QUERY
from helmdash.api.parsing import Shape
from helmdash.core.catalog.catalog import EntryKind
from helmdash.core.decoding.decoding import Stage
from helmdash.shapes.catalogs import AnyCatalog, OptionalCatalog
from helmdash.shapes.fields import STRICT, CatalogName, FreeObject, Intent, Word64
from helmdash.shapes.fits import FitIn, History


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


class RankedEntry(TypedDict):
    """An entry with what its score is made of."""

    id: str
    kind: EntryKind
    score: float
    lexical: float
    history: float


class RankedList(TypedDict):
    """Every entry, best first."""

    ranked: list[RankedEntry]


class Decoded(TypedDict):
    """The JSON that was found, and how."""

    value: Any
    stage: Stage
    partial: bool
    stripped_bytes: int


class CatalogQuery(TypedDict, total=False):
    """How a catalog is imported."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    current: Annotated[
        Literal["true", "false"],
        Field(description="Whether fits that name no catalog use this one from now on (default)."),
    ]


CATALOG_QUERY = Shape(CatalogQuery)


class CatalogInfo(TypedDict):
    """One imported catalog, without its body."""

    name: str
    revision: int
    digest: str
    bytes: int
    packs: int
    pipelines: int
    created_at: datetime


class CatalogDetail(CatalogInfo):
    """One imported catalog."""

    catalog: AnyCatalog


class CatalogList(TypedDict):
    """Revisions, newest first, at most 50."""

    items: list[CatalogInfo]
    next: None


class Imported(TypedDict):
    """What an import led to."""

    name: str
    revision: int
    is_new: bool
