"""Requests of other formats, written for an upstream that speaks the Responses API and no other.

https://platform.openai.com/docs/api-reference/responses/create
"""

from __future__ import annotations

from collections.abc import Iterator

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import post
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH
from helmdash.providers.openai_responses.write_input import write_input
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.wire import ChatRequest, Choice, Json, JsonMode, Tool

# OpenAI refuses a smaller limit: "Expected a value >= 16".
_LEAST_MAX_TOKENS = 16
_NO_PARAMETERS: Json = {"type": "object", "properties": {}}


def write_request(request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """The request for an upstream. Raises CannotTranslate.

    Nothing is to be kept there (`store: false`): the client's API keeps nothing, and its histories
    come whole. A stream reports usage unasked.
    """
    body: dict[str, Json] = {
        "model": model,
        "input": write_input(request.messages),
        "store": False,
        **({"stream": True} if request.stream else {}),
        **_tool_members(request),
        **without_nones(
            max_output_tokens=_limit(request.max_tokens),
            temperature=request.temperature,
            top_p=request.top_p,
        ),
    }
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort}
    if request.json_mode is not None:
        body["text"] = {"format": _format(request.json_mode)}
    asked = post(endpoint, RESPONSES_PATH, to_json(body))
    return HttpRequest(
        path=asked.path,
        headers=asked.headers,
        body=asked.body,
        left_out=tuple(_without_words(request)),
    )


def _tool_members(request: ChatRequest) -> dict[str, Json]:
    if not request.tools:
        return {}
    members: dict[str, Json] = {"tools": [_write_tool(tool) for tool in request.tools]}
    choice = request.tool_choice
    if choice is not None and choice.mode is Choice.ONE:
        members["tool_choice"] = {"type": "function", "name": choice.name}
    elif choice is not None:
        members["tool_choice"] = choice.mode.value
    if request.parallel_tool_calls is not None:
        members["parallel_tool_calls"] = request.parallel_tool_calls
    return members


def _write_tool(tool: Tool) -> dict[str, Json]:
    """A function. This API makes every schema strict where nothing is said of it, and others do
    not; it wants parameters."""
    described = {} if tool.description is None else {"description": tool.description}
    return {
        "type": "function",
        "name": tool.name,
        **described,
        "parameters": _NO_PARAMETERS if tool.parameters is None else tool.parameters,
        "strict": tool.strict is True,
    }


def _limit(max_tokens: int | None) -> int | None:
    return None if max_tokens is None else max(max_tokens, _LEAST_MAX_TOKENS)


def _format(mode: JsonMode) -> dict[str, Json]:
    if mode.schema is None:
        return {"type": "json_object"}
    told = without_nones(name=mode.name or "reply", schema=mode.schema, strict=mode.strict)
    return {"type": "json_schema", **told}


def _without_words(request: ChatRequest) -> Iterator[str]:
    """Wishes that this API has no words for, and that an answer may show."""
    if request.stop:
        yield "stop: this model's API has no stop sequences: left out."
    if request.max_tokens is not None and request.max_tokens < _LEAST_MAX_TOKENS:
        yield f"The reply may have {_LEAST_MAX_TOKENS} tokens, the smallest limit this API takes."
