"""Requests of the OpenAI chat format, written for an upstream by its vendor's row (quirks.py)."""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import CHAT_PATH, post
from helmdash.providers.openai.write_messages import write_messages
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.quirks import (
    AskForReasoning,
    AskForUsage,
    Quirk,
    marks_cache,
    quirk_of,
    wants_completion_limit,
)
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Json,
    JsonMode,
    Tool,
)


def write_request(request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """The request for an upstream. Raises CannotTranslate.

    Neither `extra`, which is another format's, nor `metadata`, which OpenAI refuses for calls it
    does not store, is sent.
    """
    quirk = quirk_of(endpoint)
    body: dict[str, Json] = {
        "model": model,
        "messages": write_messages(
            request.messages, quirk=quirk, marks_cache=marks_cache(quirk, model)
        ),
        **_stream(request, quirk),
        **_tool_members(request),
        **_limits(request, quirk, model),
        **_sampling(request, quirk),
        **_reasoning_members(request, quirk),
    }
    if request.json_mode is not None:
        body["response_format"] = _response_format(request.json_mode, quirk)
    return post(endpoint, CHAT_PATH, to_json(body))


def _stream(request: ChatRequest, quirk: Quirk) -> dict[str, Json]:
    if not request.stream:
        return {}
    if quirk.ask_for_usage is AskForUsage.UNASKED:
        return {"stream": True}
    return {"stream": True, "stream_options": {"include_usage": True}}


def _tool_members(request: ChatRequest) -> dict[str, Json]:
    if not request.tools:
        return {}
    members: dict[str, Json] = {"tools": [_write_tool(tool) for tool in request.tools]}
    choice = request.tool_choice
    if choice is not None and choice.mode is Choice.ONE:
        members["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice is not None:
        members["tool_choice"] = choice.mode.value
    if request.parallel_tool_calls is not None:
        members["parallel_tool_calls"] = request.parallel_tool_calls
    return members


def _write_tool(tool: Tool) -> dict[str, Json]:
    function = without_nones(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        strict=tool.strict,
    )
    return {"type": "function", "function": function}


def _limits(request: ChatRequest, quirk: Quirk, model: str) -> dict[str, Json]:
    if request.max_tokens is None:
        return {}
    name = "max_completion_tokens" if wants_completion_limit(quirk, model) else "max_tokens"
    return {name: request.max_tokens}


def _sampling(request: ChatRequest, quirk: Quirk) -> dict[str, Json]:
    return without_nones(
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k if quirk.has_top_k else None,
        stop=list(request.stop) or None,
        **{quirk.seed_member: request.seed},
        presence_penalty=request.presence_penalty if quirk.has_penalties else None,
        frequency_penalty=request.frequency_penalty if quirk.has_penalties else None,
    )


def _reasoning_members(request: ChatRequest, quirk: Quirk) -> dict[str, Json]:
    match quirk.ask_for_reasoning:
        case AskForReasoning.EFFORT:
            return without_nones(reasoning_effort=request.reasoning_effort)
        case AskForReasoning.OBJECT:
            # One of the two: OpenRouter refuses both at once.
            limited = request.reasoning_tokens is not None
            about = without_nones(
                effort=None if limited else request.reasoning_effort,
                max_tokens=request.reasoning_tokens,
            )
            return {"reasoning": about} if about else {}
        case AskForReasoning.NONE:
            return {}


def _response_format(mode: JsonMode, quirk: Quirk) -> dict[str, Json]:
    if mode.schema is None or not quirk.has_json_schema:
        return {"type": "json_object"}
    schema = without_nones(name=mode.name or "reply", schema=mode.schema, strict=mode.strict)
    return {"type": "json_schema", "json_schema": schema}
