"""The OpenAPI document and the page made from it: plain HTML, no script, nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from helmdash.api.openapi.document import document
from helmdash.api.problems import KINDS
from helmdash.api.responding import read


@csrf_exempt  # refused by method, in our shape
@require_safe
def openapi_json(request: HttpRequest) -> HttpResponse:
    """`/api/v1/openapi.json`, as tools read it."""
    return read(request, document())


@csrf_exempt  # refused by method, in our shape
@require_safe
def docs_page(request: HttpRequest) -> HttpResponse:
    """`/api/v1/docs`: every route, error and schema, without a script."""
    found = document()
    context = {
        "version": found["info"]["version"],
        "introduction": found["info"]["description"].replace("`", ""),
        "tags": [
            {**tag, "operations": list(_operations(found, tag["name"]))} for tag in found["tags"]
        ],
        "problems": [
            {"code": code.value, "status": kind.status, "meaning": kind.meaning}
            for code, kind in KINDS.items()
        ],
        "schemas": [
            {"name": name, "text": _pretty(schema)}
            for name, schema in found["components"]["schemas"].items()
        ],
    }
    return render(request, "api/docs.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """One route as the page shows it."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    scope: str | None
    parameters: list[dict[str, Any]]
    has_body: bool
    body_schema: str
    body_examples: list[tuple[str, str]]
    answers: list[dict[str, Any]]


def _operations(found: dict[str, Any], tag: str) -> Iterator[_Operation]:
    for path, methods in found["paths"].items():
        for method, given in methods.items():
            if tag in given["tags"]:
                yield _operation(path, method, given)


def _operation(path: str, method: str, given: dict[str, Any]) -> _Operation:
    content = given.get("requestBody", {}).get("content", {}).get("application/json", {})
    description = given["description"].rsplit("\n\n", 1)
    return _Operation(
        id=given["operationId"],
        method=method.upper(),
        path=path,
        summary=given["summary"],
        description=description[0].replace("`", "") if len(description) > 1 else "",
        scope=given["x-scope"],
        parameters=[
            {
                **parameter,
                "kind": _kind(parameter["schema"]),
                "meaning": parameter.get("description", "").replace("`", ""),
            }
            for parameter in given["parameters"]
        ],
        has_body=bool(content),
        body_schema=_name(content.get("schema", {})),
        body_examples=[
            (name, _pretty(example["value"]))
            for name, example in content.get("examples", {}).items()
        ],
        answers=[
            {
                "status": status,
                # Markdown for tools, plain text here.
                "meaning": answer["description"].replace("`", ""),
                "schema": _shape_of(answer),
            }
            for status, answer in given["responses"].items()
        ],
    )


def _shape_of(answer: dict[str, Any]) -> str:
    for content in answer.get("content", {}).values():
        return _name(content["schema"])
    return ""


def _name(schema: dict[str, Any]) -> str:
    """The component a schema refers to; empty where it is written out."""
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _kind(schema: dict[str, Any]) -> str:
    """A parameter's type in a few words."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][_name(schema)]
    if "enum" in schema:
        return " | ".join(schema["enum"])
    words = [str(schema.get("type", "any"))]
    words += [str(schema["format"])] if "format" in schema else []
    if "maximum" in schema:
        words.append(f"{schema.get('minimum', 0)} to {schema['maximum']}")
    return ", ".join(words)


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
