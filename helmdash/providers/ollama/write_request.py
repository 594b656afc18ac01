"""Requests to Ollama: a ChatRequest as `/api/chat`, a client's own bytes, models, embeddings.

Source: https://docs.ollama.com/api. Ollama has no tool choice: "none" leaves the tools out, one
named tool is the only one that is offered, and "required" cannot be said (its own OpenAI-shaped
API ignores it, too).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.ollama.http import post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.members import body_of, without_nones
from helmdash.providers.shared.tool_ids import (
    arguments_object,
    is_derived,
    names_of_calls,
    result_text,
)
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Image,
    Json,
    JsonMode,
    Message,
    Other,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

# These take a level; every other model takes yes or no, and answers a level with a 400
# (https://docs.ollama.com/capabilities/thinking).
_TAKES_LEVELS = re.compile(r"(?:.*/)?gpt-oss", re.IGNORECASE)
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}


def write_request(request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Write a request for `/api/chat`. Raises CannotTranslate for images by URL and parts that
    only another format knows."""
    names = names_of_calls(request.messages)
    body = without_nones(
        model=model,
        messages=[made for message in request.messages for made in _messages(message, names)],
        stream=request.stream,
        tools=_tools(request),
        format=_format(request.json_mode),
        think=_think(request, model),
        options=_options(request) or None,
    )
    return post(endpoint, "chat", body_of(body))


# --- messages


def _messages(message: Message, names: dict[str, str]) -> Iterator[dict[str, Json]]:
    """One message; a message for each tool result."""
    for part in message.parts:
        if isinstance(part, Other):
            raise CannotTranslate(
                f"A part of the kind {part.shown_kind!r} cannot be sent to Ollama."
            )
        if isinstance(part, ToolResult):
            yield _result(part, names)
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if rest or message.role is not Role.TOOL:
        role = Role.USER if message.role is Role.TOOL else message.role
        yield _message(role, rest)


def _message(role: Role, parts: tuple[Part, ...]) -> dict[str, Json]:
    calls = [_call(part) for part in parts if isinstance(part, ToolCall)]
    thinking = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return without_nones(
        role=role.value,
        content="".join(part.text for part in parts if isinstance(part, Text)),
        thinking=thinking or None,
        images=_images(parts),
        tool_calls=calls or None,
    )


def _call(call: ToolCall) -> dict[str, Json]:
    function = {"name": call.name, "arguments": arguments_object(call.arguments)}
    return without_nones(id=_own_id(call.id), function=function)


def _result(result: ToolResult, names: dict[str, str]) -> dict[str, Json]:
    return without_nones(
        role=Role.TOOL.value,
        content=result_text(result),
        images=_images(result.parts),
        tool_name=result.name or names.get(result.call_id),
        tool_call_id=_own_id(result.call_id),
    )


def _own_id(call_id: str) -> str | None:
    """Ollama gave no id where we had to derive one, so it gets none back."""
    return None if is_derived(call_id) else call_id


def _images(parts: tuple[Part, ...]) -> list[str] | None:
    found: list[str] = []
    for part in parts:
        if not isinstance(part, Image):
            continue
        if part.data is None:
            raise CannotTranslate(
                "Ollama does not fetch images: send the image itself, as a base64 data URL."
            )
        found.append(part.data)
    return found or None


# --- tools and options


def _tools(request: ChatRequest) -> list[Json] | None:
    choice = request.tool_choice
    if choice is not None and choice.mode is Choice.NONE:
        return None
    one = choice.name if choice is not None and choice.mode is Choice.ONE else None
    offered = [tool for tool in request.tools if one is None or tool.name == one]
    return [_tool(tool) for tool in offered] or None


def _tool(tool: Tool) -> dict[str, Json]:
    # A tool without parameters takes an empty object: templates expect the schema to be there.
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = without_nones(name=tool.name, description=tool.description, parameters=parameters)
    return {"type": "function", "function": function}


def _format(mode: JsonMode | None) -> Json:
    if mode is None:
        return None
    return mode.schema if mode.schema is not None else "json"


def _think(request: ChatRequest, model: str) -> bool | str | None:
    effort = request.reasoning_effort
    if effort is None:
        return True if request.reasoning_tokens else None
    if effort == "none":
        return False
    return _LEVELS.get(effort, "medium") if _TAKES_LEVELS.match(model) else True


def _options(request: ChatRequest) -> dict[str, Json]:
    return without_nones(
        num_ctx=request.num_ctx,
        num_predict=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        stop=list(request.stop) or None,
        seed=request.seed,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
    )
