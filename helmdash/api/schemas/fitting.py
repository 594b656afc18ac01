"""Fitting, ranking, decoding, and the catalogs they work on."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Required

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.fields import CatalogName, FreeObject, Intent, ModelId, Word64
from helmdash.api.parsing import Shape
from helmdash.api.schemas.budgets import Effective
from helmdash.api.schemas.common import QUERY, STRICT, CompactionStep, KindText, VariantText
from helmdash.core.catalog import EntryKind
from helmdash.core.decoding import Stage

_NAME = {"type": "string", "pattern": r"\S"}
_ENTRY = {
    "description": {"description": "Text; cut only at the ends of its sentences."},
}
# The seed's RoutingGuide. Names are required; all else is carried, whatever its type.
CATALOG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Packs by `name` and pipelines by `id`, all different. Members that are not "
    "described here are carried untouched.",
    "properties": {
        "packs": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": _NAME,
                    **_ENTRY,
                    "metadata": {
                        "description": "accepts, produces, intent_keywords: lists of text; "
                        "typical_use, limitations: text."
                    },
                },
            },
        },
        "pipelines": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": _NAME,
                    "name": _NAME,
                    **_ENTRY,
                    "metadata": {
                        "description": "As for packs, and supersedes (a list of packs), steps, "
                        "inputs, outputs."
                    },
                },
            },
        },
    },
}
# core.catalog checks it, so that its faults have the same words everywhere.
AnyCatalog = Annotated[Any, WithJsonSchema(CATALOG_SCHEMA)]
OptionalCatalog = Annotated[Any, WithJsonSchema({"anyOf": [CATALOG_SCHEMA, {"type": "null"}]})]


class PastPlan(TypedDict):
    """An earlier intent and the entries that served it, newest last."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    intent: str
    tools: Annotated[list[str], Field(max_length=1000)]


_History = Annotated[list[PastPlan], Field(max_length=1000)]


class FitIn(TypedDict, total=False):
    """A catalog to fit to a model's budget for an intent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    model: Required[ModelId]
    intent: Required[Intent]
    catalog: Annotated[
        OptionalCatalog, Field(description="Left out: `catalog_name`, or the current catalog.")
    ]
    catalog_name: CatalogName | None
    context: Annotated[FreeObject | None, Field(description="Counted, since it is sent, too.")]
    defaults: Annotated[FreeObject | None, Field(description="Counted, since it is sent, too.")]
    history: _History | None


class RankIn(TypedDict, total=False):
    """A catalog to put in the order of an intent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    intent: Required[Intent]
    catalog: OptionalCatalog
    catalog_name: CatalogName | None
    history: _History | None


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


class CompactionEntry(TypedDict):
    """An entry by its rank for the intent."""

    id: str
    kind: KindText
    rank: int
    score: float
    history: Annotated[float, Field(description="What past plans add to the score.")]


class Compaction(TypedDict):
    """The receipt of fitting (the Trim)."""

    before_bytes: int
    after_bytes: int
    fits: bool
    limit_bytes: int | None
    dropped: list[str]
    steps: list[CompactionStep]
    kept: list[CompactionEntry]
    removed: list[CompactionEntry]
    versions: dict[str, str]
    timings_ms: dict[str, float]


_ResponseFormat = Annotated[str, WithJsonSchema({"type": "string", "enum": ["", "json_object"]})]
_Placement = Annotated[str, WithJsonSchema({"type": "string", "enum": ["system", "user"]})]


class Fitted(TypedDict):
    """The catalog to send, and how."""

    fit_id: str
    catalog: AnyCatalog
    compaction: Compaction
    budget: Effective
    prompt_variant: VariantText
    response_format: _ResponseFormat
    catalog_placement: _Placement


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
