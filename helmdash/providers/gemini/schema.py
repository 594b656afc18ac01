"""Gemini's own schema language to JSON Schema.

Gemini's `Schema` is a subset of OpenAPI 3.0 with upper-case types, `nullable` and counts written
as strings (https://ai.google.dev/api/caching#Schema). The way back is not needed: newer members
(`parametersJsonSchema`, `responseJsonSchema`) take JSON Schema as it is, where the older ones
refuse `$ref`, `additionalProperties` and `const` with a 400.
"""

from __future__ import annotations

from helmdash.providers.gemini.parts import camel
from helmdash.providers.shared.reported import number_of
from helmdash.providers.wire import Json

# Gemini's name (or its snake-case spelling) -> JSON Schema's. What is not here is dropped.
_PLAIN = {
    "title": "title",
    "description": "description",
    "default": "default",
    "enum": "enum",
    "pattern": "pattern",
    "required": "required",
    "minimum": "minimum",
    "maximum": "maximum",
    "$ref": "$ref",
    "ref": "$ref",
}
_COUNTS = (
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
)
_MAPS = {"properties": "properties", "$defs": "$defs", "defs": "$defs"}
# Deep enough for any schema a person wrote; a deeper one is cut, not followed.
_DEEPEST = 64


def to_json_schema(schema: Json, *, depth: int = 0) -> Json:
    """Translate one Gemini schema; anything that is not an object is given back as it is.

    A schema that is JSON Schema already (lower-case types) comes back with the same meaning.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return schema
    found: dict[str, Json] = {}
    for name, value in schema.items():
        _add(found, camel(name), value, depth + 1)
    if schema.get("nullable") is True:
        _allow_null(found)
    return found


def _add(found: dict[str, Json], name: str, value: Json, depth: int) -> None:
    if value is None:
        return
    if name == "type":
        found["type"] = _type(value)
    elif name in _PLAIN:
        found[_PLAIN[name]] = value
    elif name in _COUNTS:
        found[name] = _count(value)
    elif name in _MAPS and isinstance(value, dict):
        inner = {key: to_json_schema(child, depth=depth) for key, child in value.items()}
        found[_MAPS[name]] = inner
    elif name in {"items", "additionalProperties"}:
        found[name] = to_json_schema(value, depth=depth)
    elif name in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
        found[name] = [to_json_schema(child, depth=depth) for child in value]
    elif name == "format" and value != "enum":  # "enum" only says that there is an enum
        found["format"] = value
    elif name == "example":
        found["examples"] = [value]


def _type(value: Json) -> Json:
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, list):
        return [_type(item) for item in value]
    return value


def _count(value: Json) -> Json:
    """Protobuf writes 64-bit numbers as strings."""
    number = number_of(value) if isinstance(value, str) else None
    return value if number is None else number


def _allow_null(found: dict[str, Json]) -> None:
    kind = found.get("type")
    if isinstance(kind, str) and kind != "null":
        found["type"] = [kind, "null"]
    elif isinstance(found.get("anyOf"), list):
        found["anyOf"] = [*found["anyOf"], {"type": "null"}]
    if isinstance(found.get("enum"), list) and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
