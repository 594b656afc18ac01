"""The OpenAPI document, made from the routes and the shapes that validate."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

import helmdash
from helmdash.api.idempotency import HEADER, MOST_CHARS, REPLAYED
from helmdash.api.openapi.answer_types import answer_type
from helmdash.api.preconditions import HEADER as GUARD
from helmdash.api.problems import CONTENT_TYPE as PROBLEM_TYPE
from helmdash.api.problems import KINDS, Code
from helmdash.api.routes import ROUTES, Answer, Route
from helmdash.api.schemas.common import ProblemBody
from helmdash.core.calls.capture import CONVERSATION_CHARS, CONVERSATION_PATTERN
from helmdash.installation import COMMAND

PREFIX = "/api/v1"
_REF = "#/components/schemas/{model}"

_DESCRIPTION = (
    "Ask before a call what fits a model; report after it what happened. Times are RFC 3339 in "
    "UTC, tokens and bytes whole numbers, and what is not known is null. Lists go on with "
    "`?cursor=` and the `next` of the page before. Reads carry an ETag; with it in "
    "`If-Match` an edit does not undo what others did meanwhile. Every error is a "
    "problem+json that names the fields."
)
_TAGS = {
    "calls": "Report calls and read them back.",
    "conversations": "How full each conversation is, how it came there, and what to do about it.",
    "fitting": "Fit a catalog to a model's budget, rank it, find the JSON in a reply.",
    "planning": "Turn what a user wants into steps of the catalog, and read back what came of it.",
    "catalogs": "The packs and pipelines that fits and plans choose from.",
    "budgets": "What each model can safely take and give.",
}
# The parts of paths. Ids are opaque: one that nothing has is answered with 404.
_PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "budget_id": {"type": "integer", "minimum": 1},
    "call_id": {"type": "string", "minLength": 1},
    "conversation_id": {
        "type": "string",
        "maxLength": CONVERSATION_CHARS,
        "pattern": CONVERSATION_PATTERN,
    },
    "fit_id": {"type": "string", "minLength": 1},
    "name": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,120}$"},
    "plan_id": {"type": "string", "minLength": 1},
    "what_if_id": {"type": "string", "minLength": 1},
    "reminder_id": {"type": "string", "minLength": 1},
    "suggestion_id": {"type": "integer", "minimum": 1},
}

_IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": MOST_CHARS, "pattern": "^[ -~]+$"},
    "description": "Kept for 24 hours for each API key and path. The same value with the same "
    f"body gets the first response again, with `{REPLAYED}: true`; with another body 422; while "
    "the first one is being carried out 409 with `Retry-After`. Only responses with 2xx are kept. "
    "Without a meaning for calls that have an `id`: these are safe to repeat anyway.",
}
_IF_MATCH: dict[str, Any] = {
    "name": GUARD,
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag that a read of this address gave. Where somebody else has changed it "
    "since, nothing is done (412).",
}
_REPLAYED: dict[str, Any] = {
    "description": "The response is that of the first request with this `Idempotency-Key`.",
    "schema": {"const": "true"},
}


def document() -> dict[str, Any]:
    """The whole document. Compiled once: the routes do not change while the process runs."""
    with _making:
        return _made()


# Shapes are found again by what they are, not by what they say: made by two at once, those of one
# would be missing with the other.
_making = threading.Lock()


@cache
def _made() -> dict[str, Any]:
    schemas = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        path = PREFIX + re.sub(r"{\w+:", "{", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "HelmDash",
            "version": helmdash.__version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": _reachable(paths, schemas.definitions),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"An API key: `{COMMAND} apikey create --name NAME`. "
                    "`x-api-key: KEY` is understood as well.",
                }
            },
        },
    }


def _reachable(paths: object, definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions something refers to: those of queries have become parameters."""
    found: dict[str, Any] = {}
    pending = list(_references(paths))
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = definitions[name]
            pending.extend(_references(found[name]))
    return dict(sorted(found.items()))


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[1]
        for inner in value.values():
            yield from _references(inner)
    if isinstance(value, list):
        for inner in value:
            yield from _references(inner)


@dataclass(frozen=True, slots=True)
class _Schemas:
    """The JSON Schema of each shape in each direction, and the definitions they share."""

    found: dict[tuple[int, str], dict[str, Any]]
    definitions: dict[str, Any]

    def into(self, shape: Any) -> dict[str, Any]:
        return self.found[(id(shape), "validation")]

    def out_of(self, shape: Any) -> dict[str, Any]:
        return self.found[(id(shape), "serialization")]

    def properties(self, shape: Any) -> tuple[dict[str, Any], frozenset[str]]:
        """The members of a query's shape, and which are required."""
        schema = self.into(shape)
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].rsplit("/", 1)[1]]
        return schema["properties"], frozenset(schema.get("required", ()))


def _schemas() -> _Schemas:
    wanted = list(_shapes())
    inputs = [(str(n), mode, TypeAdapter(shape)) for n, (shape, mode) in enumerate(wanted)]
    found, shared = TypeAdapter.json_schemas(inputs, ref_template=_REF)
    return _Schemas(
        {
            (id(shape), mode): _plain(found[(str(n), mode)])
            for n, (shape, mode) in enumerate(wanted)
        },
        _plain(shared.get("$defs", {})),
    )


def _shapes() -> Iterator[tuple[Any, JsonSchemaMode]]:
    seen: set[tuple[int, str]] = set()
    for shape, mode in _all_shapes():
        if (id(shape), mode) not in seen:
            seen.add((id(shape), mode))
            yield shape, mode


def _all_shapes() -> Iterator[tuple[Any, JsonSchemaMode]]:
    yield answer_type(ProblemBody), "serialization"
    for route in ROUTES:
        if route.body is not None:
            yield route.body, "validation"
        if route.query is not None:
            yield route.query.kind, "validation"
        for answer in route.answers.values():
            if answer.shape is not None:
                yield answer_type(answer.shape), "serialization"


def _plain(value: Any) -> Any:
    """Without pydantic's titles, which only repeat the names."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _plain(item)
        for name, item in value.items()
        if not (name == "title" and isinstance(item, str))
    }


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    scope = f"Scope: `{route.scope}`." if route.scope else "Any valid key."
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": f"{route.description}\n\n{scope}".strip(),
        "x-scope": route.scope,
        "parameters": [
            *_path_parameters(route.path),
            *_query_parameters(route, schemas),
            *([_IDEMPOTENCY_KEY] if route.once else []),
            *([_IF_MATCH] if route.is_guarded else []),
        ],
        "responses": {
            **{
                str(status): _good(answer, schemas)
                | ({"headers": {REPLAYED: _REPLAYED}} if route.once else {})
                for status, answer in route.answers.items()
            },
            **_bad(route.problems, schemas),
        },
    }
    if route.body is not None:
        content: dict[str, Any] = {"schema": schemas.into(route.body)}
        if route.body_examples:
            content["examples"] = {
                name: {"value": value} for name, value in route.body_examples.items()
            }
        operation["requestBody"] = {
            "required": not route.is_body_optional,
            "content": {"application/json": content},
        }
    return operation


def _path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(?:\w+:)?(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": _PATH_PARAMETERS[name]}


def _query_parameters(route: Route, schemas: _Schemas) -> Iterator[dict[str, Any]]:
    if route.query is None:
        return
    properties, required = schemas.properties(route.query.kind)
    for name, given in properties.items():
        schema = dict(given)
        description = schema.pop("description", None)
        yield {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": schema,
            **({"description": description} if description else {}),
        }


def _good(answer: Answer, schemas: _Schemas) -> dict[str, Any]:
    if answer.shape is None and answer.content_type == "application/json":
        return {"description": answer.meaning}
    schema = (
        {"type": "string"} if answer.shape is None else schemas.out_of(answer_type(answer.shape))
    )
    content: dict[str, Any] = {"schema": schema}
    if answer.example is not None:
        content["example"] = answer.example
    return {"description": answer.meaning, "content": {answer.content_type: content}}


def _bad(codes: Iterable[Code], schemas: _Schemas) -> dict[str, Any]:
    by_status: dict[int, list[Code]] = {}
    for code in codes:
        by_status.setdefault(KINDS[code].status, []).append(code)
    schema = schemas.out_of(answer_type(ProblemBody))
    return {
        str(status): {
            "description": " ".join(f"`{code.value}`: {KINDS[code].meaning}" for code in found),
            "content": {PROBLEM_TYPE: {"schema": schema}},
        }
        for status, found in sorted(by_status.items())
    }
