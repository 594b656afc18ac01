"""JSON Schemas as Anthropic's structured output takes them.

It accepts closed objects only and no limits on numbers, lengths or counts
(platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations"). A
limit is moved into the description, where the model at least reads it. A schema that cannot be
closed (free keys, recursion, foreign references) gets None: it has to go another way.
"""

from __future__ import annotations

from typing import Any

import orjson

from helmdash.providers.wire import Json, Object

_LIMITS = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems
    uniqueItems minProperties maxProperties""".split()
)
_FORMATS = frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())
_UNKNOWN_MEMBERS = frozenset(
    "patternProperties not if then else dependentSchemas dependentRequired contains "
    "unevaluatedProperties propertyNames prefixItems".split()
)
_DEFINITIONS = ("$defs", "definitions")
_CHOICES = ("anyOf", "oneOf", "allOf")
# A schema as deep as this is recursive or hostile; the vendor's own limit is lower.
_DEEPEST = 64


class _CannotClose(Exception):
    """The schema says something that structured output cannot promise."""


def to_structured_schema(schema: Object) -> dict[str, Any] | None:
    """The schema with closed objects and no limits; None where its meaning would change."""
    try:
        closed = _closed(schema, depth=0)
        if _has_circle(schema):
            return None
    except _CannotClose:
        return None
    return closed


def _closed(schema: Json, *, depth: int) -> dict[str, Any]:
    if not isinstance(schema, dict) or depth > _DEEPEST or _UNKNOWN_MEMBERS & schema.keys():
        raise _CannotClose
    reference = schema.get("$ref")
    if reference is not None and not str(reference).startswith(("#/$defs/", "#/definitions/")):
        raise _CannotClose
    result = {name: value for name, value in schema.items() if not _is_limit(name, value)}
    for name in _CHOICES:
        if name in result:
            closed = [_closed(one, depth=depth + 1) for one in _list(result.pop(name))]
            result["anyOf" if name == "oneOf" else name] = closed
    for name in ("properties", *_DEFINITIONS):
        if name in result:
            members = _object(result[name]).items()
            result[name] = {key: _closed(one, depth=depth + 1) for key, one in members}
    if "items" in result:
        result["items"] = _closed(result["items"], depth=depth + 1)
    if _is_about_objects(schema):
        result["additionalProperties"] = _closing(schema)
    _describe(result, {name: value for name, value in schema.items() if _is_limit(name, value)})
    return result


def _is_about_objects(schema: Object) -> bool:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return "object" in kinds or "properties" in schema or "additionalProperties" in schema


def _closing(schema: Object) -> bool:
    """False, the only value allowed; an object that says it takes other keys cannot be closed."""
    if schema.get("additionalProperties") not in (None, False) or not schema.get("properties"):
        raise _CannotClose
    return False


def _is_limit(name: str, value: Json) -> bool:
    if name == "minItems":
        return value not in (0, 1)
    if name == "format":
        return value not in _FORMATS
    return name in _LIMITS


def _describe(result: dict[str, Any], limits: dict[str, Json]) -> None:
    if not limits:
        return
    words = ", ".join(f"{name}: {orjson.dumps(value).decode()}" for name, value in limits.items())
    before = result.get("description")
    result["description"] = f"{before} ({words})" if before else words


def _has_circle(schema: Object) -> bool:
    """Whether a definition leads back to itself."""
    leads = {
        f"#/{place}/{name}": _references(one, depth=0)
        for place in _DEFINITIONS
        for name, one in _object(schema.get(place, {})).items()
    }
    return any(_leads_back(start, leads) for start in leads)


def _leads_back(start: str, leads: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    pending = [start]
    while pending:
        for target in leads.get(pending.pop(), ()):
            if target == start:
                return True
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return False


def _references(value: Json, *, depth: int) -> set[str]:
    if depth > 2 * _DEEPEST:
        raise _CannotClose
    if isinstance(value, list):
        return set().union(*(_references(one, depth=depth + 1) for one in value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*(_references(one, depth=depth + 1) for one in value.values()))
    return found | {str(value["$ref"])} if "$ref" in value else found


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _CannotClose
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise _CannotClose
    return value
