"""JSON mode on the Messages API: structured output, or a tool whose input is the reply.

Anthropic has no mode for "any JSON object", and older models have no structured output. Then a
tool is offered, and forced where the model allows that; what the model gives it becomes the text
of the reply. Both directions ask this module, so that they agree on the tool's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helmdash.providers.anthropic.abilities.schema import to_structured_schema
from helmdash.providers.anthropic.abilities.traits import Traits, traits_of
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.wire import ChatRequest, Event, TextDelta

_NAME = "json_reply"
_ANY_OBJECT: dict[str, Any] = {"type": "object"}
# Several times what a model can write into one reply; text beyond it no longer waits.
_LARGEST_WAITING_CHARS = 2 * 1024 * 1024


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
    """A name that no tool of the client's has, so that a call of it can only be the JSON wanted."""
    taken = {tool.name for tool in request.tools}
    name = _NAME
    while name in taken:
        name += "_"
    return name


def json_tool_in(request: ChatRequest) -> str | None:
    """The name to look for in a reply; None where JSON was not asked for."""
    return json_tool_name(request) if request.json_mode is not None else None


def has_json_tool(request: ChatRequest, *, model: str | None) -> bool:
    """Whether the tool for JSON may have been offered to the model that answers.

    A name of a route says nothing of the model that was asked, so both names have to speak
    against it: the client's, and the one that the reply gives (None: not known).
    """
    if request.json_mode is None:
        return False
    if model is None:
        return True
    try:
        plans = [plan_json(request, traits_of(name)) for name in (request.model, model)]
    except CannotTranslate:
        return True
    return any(plan.tool is not None for plan in plans)


class TextBesideJson:
    """The text of a stream, which waits until it is known whether the tool for JSON follows.

    Some models write a sentence before they use the tool, and it would spoil the JSON.
    """

    __slots__ = ("_is_dropped", "_size", "_waiting")

    def __init__(self, *, waits: bool) -> None:
        self._is_dropped = False
        self._size = 0
        self._waiting: list[str] | None = [] if waits else None

    def add(self, text: str) -> list[Event]:
        """Text that came: now, later or never."""
        if self._is_dropped:
            return []
        if self._waiting is None:
            return [TextDelta(text=text)]
        self._waiting.append(text)
        self._size += len(text)
        return self.release() if self._size > _LARGEST_WAITING_CHARS else []

    def release(self) -> list[Event]:
        """The text that waited; no more of it will wait."""
        text = "".join(self._waiting or ())
        self._waiting = None
        return [TextDelta(text=text)] if text else []

    def drop(self) -> None:
        """The tool for JSON has come: neither what waited nor what follows is given."""
        self._is_dropped = True
        self._waiting = None
