"""What a catalog looks like, as JSON Schema: for those who write one.

It is checked by `catalog.parse_catalog`, so that its faults have the same words everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from helmdash.answers import JsonSchema

_NAME = {"type": "string", "pattern": r"\S"}
_ENTRY = {
    "description": {"description": "Text; cut only at the ends of its sentences."},
}
# The RoutingGuide of helmdeck ADR 050. Names are required; all else is carried, whatever its type.
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

CatalogJson = Annotated[Mapping[str, object], JsonSchema(CATALOG_SCHEMA)]
