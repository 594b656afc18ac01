"""Requests of the OpenAI chat format, read from a client."""

from __future__ import annotations

from typing import Any

from helmdash.core.calls.usage import LARGEST_COUNT
from helmdash.providers.errors import BadRequest
from helmdash.providers.openai.read_messages import read_messages
from helmdash.providers.shared.members import (
    count_at,
    filled_text_at,
    flag_at,
    list_at,
    number_at,
    object_at,
    object_item,
    required_object_at,
    seed_at,
    texts_at,
)
from helmdash.providers.shared.reported import object_in
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Json,
    JsonMode,
    Object,
    Tool,
    ToolChoice,
)

# The members that fields of ChatRequest cover; every other one is `extra`.
_COVERED = frozenset(
    """model messages stream stream_options tools tool_choice functions function_call
    parallel_tool_calls response_format max_tokens max_completion_tokens temperature top_p top_k
    stop seed presence_penalty frequency_penalty reasoning_effort reasoning metadata""".split()
)
# Of these, the ones that only some requests say.
_RARE = _COVERED - frozenset(
    """model messages stream stream_options max_tokens max_completion_tokens temperature top_p
    metadata""".split()
)

_NAME_THE_MODEL = "This has to be the id of a model."
_MODES = {"auto": Choice.AUTO, "none": Choice.NONE, "required": Choice.REQUIRED}
_MODES["any"] = Choice.REQUIRED  # Mistral's word


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a client's request; `model` and `stream` None: as the body says. Raises BadRequest
    naming the member."""
    streams = flag_at(body, "stream") or False if stream is None else stream
    limit = count_at(body, "max_completion_tokens")
    rare = {} if _RARE.isdisjoint(body) else _read_rare(body)
    return ChatRequest(
        model=model if model is not None else model_of(body),
        messages=read_messages(body.get("messages")),
        stream=streams,
        wants_usage=wants_usage(body) if streams else True,
        max_tokens=limit if limit is not None else count_at(body, "max_tokens"),
        temperature=number_at(body, "temperature"),
        top_p=number_at(body, "top_p"),
        metadata=object_in(body, "metadata"),
        extra={name: value for name, value in body.items() if name not in _COVERED},
        **rare,
    )


def _read_rare(body: Object) -> dict[str, Any]:
    """The fields that most requests leave unsaid."""
    effort, reasoning_tokens = _reasoning(body)
    return {
        "tools": _tools(body),
        "tool_choice": _tool_choice(body),
        "parallel_tool_calls": flag_at(body, "parallel_tool_calls"),
        "json_mode": _json_mode(body),
        "top_k": count_at(body, "top_k"),
        "stop": texts_at(body, "stop"),
        "seed": seed_at(body, "seed"),
        "presence_penalty": number_at(body, "presence_penalty"),
        "frequency_penalty": number_at(body, "frequency_penalty"),
        "reasoning_effort": effort,
        "reasoning_tokens": reasoning_tokens,
    }


def wants_usage(body: Object) -> bool:
    """Whether a client asked for usage in its stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def model_of(body: Object) -> str:
    """The id of the model. Raises BadRequest where none is named."""
    model = filled_text_at(body, "model", fix=_NAME_THE_MODEL)
    if not model.strip():
        raise BadRequest("model", _NAME_THE_MODEL)
    return model


def _tools(body: Object) -> tuple[Tool, ...]:
    tools = list_at(body, "tools")
    functions = [
        _tool(item, f"tools[{at}]")
        for at, item in enumerate(tools)
        if not isinstance(item, dict) or item.get("type", "function") == "function"
    ]
    legacy = [
        _function(item, f"functions[{at}]") for at, item in enumerate(list_at(body, "functions"))
    ]
    return (*functions, *legacy)


def _tool(item: Json, at: str) -> Tool:
    return _function(
        required_object_at(object_item(item, at), "function", path=at), f"{at}.function"
    )


def _function(item: Json, at: str) -> Tool:
    function = object_item(item, at)
    description, strict = function.get("description"), function.get("strict")
    return Tool(
        name=filled_text_at(function, "name", path=at, fix="Name the function."),
        description=description if isinstance(description, str) else None,
        parameters=object_in(function, "parameters"),
        strict=strict if isinstance(strict, bool) else None,
    )


def _tool_choice(body: Object) -> ToolChoice | None:
    choice = body.get("tool_choice", body.get("function_call"))
    if isinstance(choice, str) and choice in _MODES:
        return ToolChoice(mode=_MODES[choice])
    if isinstance(choice, dict):
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str) and name:
            return ToolChoice(mode=Choice.ONE, name=name)
    if choice is None or isinstance(choice, dict):  # allowed_tools and custom: said by no other
        return None
    raise BadRequest("tool_choice", "This has to be none, auto, required or a function.")


def _json_mode(body: Object) -> JsonMode | None:
    wanted = object_at(body, "response_format")
    if wanted is None:
        return None
    match wanted.get("type"):
        case "json_object":
            # llama.cpp and Fireworks take a schema here too.
            return JsonMode(schema=object_in(wanted, "schema"))
        case "json_schema":
            return _schema_mode(required_object_at(wanted, "json_schema", path="response_format"))
        case _:
            return None


def _schema_mode(value: Object) -> JsonMode:
    name, strict = value.get("name"), value.get("strict")
    return JsonMode(
        schema=object_in(value, "schema"),
        name=name if isinstance(name, str) else None,
        strict=strict if isinstance(strict, bool) else None,
    )


def _reasoning(body: Object) -> tuple[str | None, int | None]:
    """The effort, and a limit in tokens: OpenAI's member, or OpenRouter's object."""
    effort = body.get("reasoning_effort")
    about = object_in(body, "reasoning") or {}
    if not isinstance(effort, str):
        effort = about.get("effort")
    limit = about.get("max_tokens")
    is_count = type(limit) is int and abs(limit) <= LARGEST_COUNT
    return effort if isinstance(effort, str) else None, limit if is_count else None
