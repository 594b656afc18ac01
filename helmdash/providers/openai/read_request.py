"""Requests of the OpenAI chat format, read from a client."""

from __future__ import annotations

from helmdash.providers.openai.read_messages import read_messages
from helmdash.providers.protocols import LARGEST_COUNT, BadRequest
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

_MODES = {"auto": Choice.AUTO, "none": Choice.NONE, "required": Choice.REQUIRED}
_MODES["any"] = Choice.REQUIRED  # Mistral's word


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a client's request. Raises BadRequest naming the member."""
    streams = _flag(body, "stream") or False if stream is None else stream
    effort, reasoning_tokens = _reasoning(body)
    limit = _count(body, "max_completion_tokens")
    return ChatRequest(
        model=model if model is not None else _model(body),
        messages=read_messages(body.get("messages")),
        stream=streams,
        wants_usage=wants_usage(body) if streams else True,
        tools=_tools(body),
        tool_choice=_tool_choice(body),
        parallel_tool_calls=_flag(body, "parallel_tool_calls"),
        json_mode=_json_mode(body.get("response_format")),
        max_tokens=limit if limit is not None else _count(body, "max_tokens"),
        temperature=_number(body, "temperature"),
        top_p=_number(body, "top_p"),
        top_k=_count(body, "top_k"),
        stop=_stop(body.get("stop")),
        seed=_count(body, "seed"),
        presence_penalty=_number(body, "presence_penalty"),
        frequency_penalty=_number(body, "frequency_penalty"),
        reasoning_effort=effort,
        reasoning_tokens=reasoning_tokens,
        metadata=_object(body, "metadata"),
        extra={name: value for name, value in body.items() if name not in _COVERED},
    )


def wants_usage(body: Object) -> bool:
    """Whether a client asked for usage in its stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _model(body: Object) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise BadRequest("model", "the id of a model is needed")
    return model


def _tools(body: Object) -> tuple[Tool, ...]:
    tools = _list(body, "tools")
    functions = [
        _tool(item, f"tools[{at}]")
        for at, item in enumerate(tools)
        if not isinstance(item, dict) or item.get("type", "function") == "function"
    ]
    legacy = [
        _function(item, f"functions[{at}]") for at, item in enumerate(_list(body, "functions"))
    ]
    return (*functions, *legacy)


def _tool(item: Json, at: str) -> Tool:
    if not isinstance(item, dict):
        raise BadRequest(at, "an object with type and function is needed")
    return _function(item.get("function"), f"{at}.function")


def _function(item: Json, at: str) -> Tool:
    if not isinstance(item, dict):
        raise BadRequest(at, "an object with a name is needed")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise BadRequest(f"{at}.name", "the name of the function is needed")
    description = item.get("description")
    parameters = item.get("parameters")
    strict = item.get("strict")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else None,
        parameters=parameters if isinstance(parameters, dict) else None,
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
    raise BadRequest("tool_choice", "none, auto, required or a function is needed")


def _json_mode(value: Json) -> JsonMode | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadRequest("response_format", "an object with a type is needed")
    match value.get("type"):
        case "json_object":
            # llama.cpp and Fireworks take a schema here too.
            schema = value.get("schema")
            return JsonMode(schema=schema if isinstance(schema, dict) else None)
        case "json_schema":
            return _schema_mode(value.get("json_schema"))
        case _:
            return None


def _schema_mode(value: Json) -> JsonMode:
    if not isinstance(value, dict):
        raise BadRequest("response_format.json_schema", "an object with a schema is needed")
    schema = value.get("schema")
    name = value.get("name")
    strict = value.get("strict")
    return JsonMode(
        schema=schema if isinstance(schema, dict) else None,
        name=name if isinstance(name, str) else None,
        strict=strict if isinstance(strict, bool) else None,
    )


def _stop(value: Json) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise BadRequest("stop", "a string or a list of strings is needed")


def _reasoning(body: Object) -> tuple[str | None, int | None]:
    """The effort, and a limit in tokens: OpenAI's member, or OpenRouter's object."""
    effort = body.get("reasoning_effort")
    about = body.get("reasoning")
    if not isinstance(about, dict):
        about = {}
    if not isinstance(effort, str):
        effort = about.get("effort")
    limit = about.get("max_tokens")
    is_count = type(limit) is int and abs(limit) <= LARGEST_COUNT
    return effort if isinstance(effort, str) else None, limit if is_count else None


def _count(body: Object, name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise BadRequest(name, "a whole number is needed")
    if value is not None and abs(value) > LARGEST_COUNT:
        raise BadRequest(name, "a smaller whole number is needed")
    return value


def _number(body: Object, name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(name, "a number is needed")
    return value


def _flag(body: Object, name: str) -> bool | None:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(name, "true or false is needed")
    return value


def _list(body: Object, name: str) -> list[Json]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest(name, "a list is needed")
    return value


def _object(body: Object, name: str) -> Object | None:
    value = body.get(name)
    return value if isinstance(value, dict) else None
