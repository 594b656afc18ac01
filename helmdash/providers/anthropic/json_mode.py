"""JSON mode on the Messages API: structured output, or a tool whose input is the reply.

Anthropic has no mode for "any JSON object", and older models have no structured output. Then a
tool is offered, and forced where the model allows that; what the model gives it becomes the text
of the reply. Both directions ask this module, so that they agree on the tool's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helmdash.providers.anthropic.models import Traits
from helmdash.providers.anthropic.schema import to_structured_schema
from helmdash.providers.base import CannotTranslate
from helmdash.providers.wire import ChatRequest

_NAME = "json_reply"
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPlan:
    """How to ask for JSON: one of `format` (structured output) and `tool`, or neither."""

    format: dict[str, Any] | None = None
    tool: dict[str, Any] | None = None


def plan_json(request: ChatRequest, traits: Traits) -> JsonPlan:
    """Choose the way for a request. Raises CannotTranslate for a schema that no way takes."""
    mode = request.json_mode
    if mode is None:
        return JsonPlan()
    if mode.schema is not None and traits.structured_output:
        closed = to_structured_schema(mode.schema)
        if closed is not None:
            return JsonPlan(format={"type": "json_schema", "schema": closed})
    schema = _ANY_OBJECT if mode.schema is None else dict(mode.schema)
    if schema.get("type", "object") != "object":
        raise CannotTranslate(
            "This model takes a JSON schema for objects only; wrap the schema in an object."
        )
    return JsonPlan(
        tool={
            "name": json_tool_name(request),
            "description": "Give the whole reply to the user, as JSON.",
            "input_schema": {**schema, "type": "object"},
        }
    )


def json_tool_name(request: ChatRequest) -> str:
    """The name of the tool for JSON; no tool of the client's has it."""
    taken = {tool.name for tool in request.tools}
    name = _NAME
    while name in taken:
        name += "_"
    return name


def json_tool_in(request: ChatRequest) -> str | None:
    """The name to look for in a reply; None where JSON was not asked for."""
    return json_tool_name(request) if request.json_mode is not None else None
