"""An Ollama client's request: `/api/chat` and `/api/generate` to a ChatRequest.

Source: https://docs.ollama.com/api/chat and /api/generate. `stream` is true unless it is said to
be false.
"""

from __future__ import annotations

from collections.abc import Iterator

from helmdash.providers.errors import BadRequest
from helmdash.providers.shared.images import image_from_url
from helmdash.providers.shared.members import (
    count_at,
    flag_at,
    list_at,
    number_at,
    object_at,
    object_item,
    seed_at,
    text_at,
    texts_at,
)
from helmdash.providers.shared.tool_ids import CallIds, arguments_text
from helmdash.providers.wire import (
    ChatRequest,
    Image,
    Json,
    JsonMode,
    Message,
    Object,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

_ROLES = {role.value: role for role in Role}
_READ_BY_BOTH = frozenset({"model", "stream", "options", "format", "think"})
_READ_BY_CHAT = _READ_BY_BOTH | {"messages", "tools"}
_READ_BY_GENERATE = _READ_BY_BOTH | {"prompt", "system", "images"}
_OPTIONS_READ_HERE = frozenset(
    {
        "num_predict",
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
    }
)
# `think` as a word, and what we make of plain "yes": the vendor's own default is the middle.
_LEVELS = frozenset({"low", "medium", "high"})
_PLAIN_THINKING = "medium"


def read_chat(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a body of `/api/chat`; `model` and `stream` None: as the body says. Raises
    BadRequest."""
    messages = tuple(_messages(list_at(body, "messages")))
    tools = tuple(
        _tool(object_item(raw, f"tools[{index}]"), f"tools[{index}]")
        for index, raw in enumerate(list_at(body, "tools"))
    )
    return _request(body, messages, tools, model=model, stream=stream, known=_READ_BY_CHAT)


def read_generate(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a body of `/api/generate`: the prompt becomes the user's message. None and what is
    raised are as for `read_chat`."""
    system = text_at(body, "system")
    prompt = text_at(body, "prompt")
    parts: tuple[Part, ...] = (Text(text=prompt),) if prompt else ()
    parts = (*parts, *_images(body, ""))
    messages = (
        *((Message(role=Role.SYSTEM, parts=(Text(text=system),)),) if system else ()),
        *((Message(role=Role.USER, parts=parts),) if parts else ()),
    )
    return _request(body, messages, (), model=model, stream=stream, known=_READ_BY_GENERATE)


def _request(
    body: Object,
    messages: tuple[Message, ...],
    tools: tuple[Tool, ...],
    *,
    model: str | None,
    stream: bool | None,
    known: frozenset[str],
) -> ChatRequest:
    options = object_at(body, "options") or {}
    limit = count_at(options, "num_predict", path="options")
    return ChatRequest(
        model=_model(body, model),
        messages=messages,
        stream=_stream(body) if stream is None else stream,
        tools=tools,
        json_mode=_json_mode(body.get("format")),
        # -1 is "without end" and -2 "as much as the window holds": no limit of the client's.
        max_tokens=limit if limit is not None and limit > 0 else None,
        temperature=number_at(options, "temperature", path="options"),
        top_p=number_at(options, "top_p", path="options"),
        top_k=count_at(options, "top_k", path="options"),
        stop=texts_at(options, "stop", path="options"),
        seed=seed_at(options, "seed", path="options"),
        presence_penalty=number_at(options, "presence_penalty", path="options"),
        frequency_penalty=number_at(options, "frequency_penalty", path="options"),
        reasoning_effort=_effort(body.get("think")),
        extra=_extra(body, options, known),
    )


def _model(body: Object, model: str | None) -> str:
    name = model or text_at(body, "model")
    if not name:
        raise BadRequest("model", "Name the model to use.")
    return name


def _stream(body: Object) -> bool:
    stream = flag_at(body, "stream")
    return True if stream is None else stream


def _json_mode(value: Json) -> JsonMode | None:
    if value is None or value == "":
        return None
    if value == "json":
        return JsonMode()
    if isinstance(value, dict):
        return JsonMode(schema=value)
    raise BadRequest("format", 'This has to be "json" or a JSON Schema.')


def _effort(value: Json) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return _PLAIN_THINKING if value else "none"
    if isinstance(value, str) and value in _LEVELS:
        return value
    raise BadRequest("think", 'This has to be true, false, "low", "medium" or "high".')


def _extra(body: Object, options: Object, known: frozenset[str]) -> dict[str, Json]:
    extra = {name: value for name, value in body.items() if name not in known}
    rest = {name: value for name, value in options.items() if name not in _OPTIONS_READ_HERE}
    return {**extra, "options": rest} if rest else extra


# --- messages


def _messages(raw_messages: list[Json]) -> Iterator[Message]:
    ids = CallIds()
    for index, raw in enumerate(raw_messages):
        path = f"messages[{index}]"
        message = object_item(raw, path)
        word = text_at(message, "role", path=path) or ""
        role = _ROLES.get("system" if word == "developer" else word)
        if role is None:
            known = ", ".join(_ROLES)
            raise BadRequest(f"{path}.role", f"This has to be one of {known}.")
        parts = tuple(_parts(message, path, ids))
        if role is Role.TOOL:
            parts = (_result(message, parts, path, ids),)
        yield Message(role=role, parts=parts)


def _parts(message: Object, path: str, ids: CallIds) -> Iterator[Part]:
    thinking = text_at(message, "thinking", path=path)
    if thinking:
        yield Reasoning(text=thinking)
    content = text_at(message, "content", path=path)
    if content:
        yield Text(text=content)
    yield from _images(message, path)
    for index, raw in enumerate(list_at(message, "tool_calls", path=path)):
        at = f"{path}.tool_calls[{index}]"
        yield _call(object_item(raw, at), at, ids)


def _images(holder: Object, path: str) -> Iterator[Image]:
    """Base64 without a word about the type, which the first bytes tell."""
    for data in texts_at(holder, "images", path=path):
        url = data if data.startswith("data:") else f"data:;base64,{data}"
        yield image_from_url(url)


def _call(raw: Object, path: str, ids: CallIds) -> ToolCall:
    function = object_at(raw, "function", path=path) or {}
    name = text_at(function, "name", path=f"{path}.function")
    if not name:
        raise BadRequest(f"{path}.function.name", "A tool call needs the tool's name.")
    arguments = arguments_text(function.get("arguments"))
    return ToolCall(
        id=ids.call(name, text_at(raw, "id", path=path)), name=name, arguments=arguments
    )


def _result(message: Object, parts: tuple[Part, ...], path: str, ids: CallIds) -> ToolResult:
    given = text_at(message, "tool_call_id", path=path)
    # Before `tool_name` there was `name`, which some clients still write.
    named = text_at(message, "tool_name", path=path) or text_at(message, "name", path=path)
    call_id, name = ids.result(named or None, given or None)
    answer = tuple(part for part in parts if isinstance(part, Text | Image))
    return ToolResult(call_id=call_id, parts=answer, name=name)


def _tool(raw: Object, path: str) -> Tool:
    function = object_at(raw, "function", path=path) or {}
    path = f"{path}.function"
    name = text_at(function, "name", path=path)
    if not name:
        raise BadRequest(f"{path}.name", "A tool needs a name.")
    return Tool(
        name=name,
        description=text_at(function, "description", path=path),
        parameters=object_at(function, "parameters", path=path),
    )
