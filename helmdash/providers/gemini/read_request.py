"""A Gemini client's request: `generateContent` and `streamGenerateContent` to a ChatRequest.

Source: https://ai.google.dev/api/generate-content. `contents`, `systemInstruction` and `parts` may
be one object instead of an array of one, as the vendor's own curl examples write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from helmdash.providers.errors import BadRequest
from helmdash.providers.gemini.parts import camel_members, read_part
from helmdash.providers.gemini.schema import to_json_schema
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
    Choice,
    Image,
    Json,
    JsonMode,
    Message,
    Object,
    Part,
    Role,
    Text,
    Tool,
    ToolChoice,
    ToolResult,
)

_ROLES = {
    "user": Role.USER,
    "model": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,  # not Gemini's word, but there is no doubt what is meant
    "function": Role.USER,  # a function response says itself what it is
    "tool": Role.USER,
    "": Role.USER,
}
_READ_HERE = frozenset({"model", "contents", "systemInstruction", "toolConfig"})
_CONFIG_READ_HERE = frozenset(
    {
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "stopSequences",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
    }
)
_JSON_READ_HERE = frozenset(
    {"responseMimeType", "responseSchema", "responseJsonSchema", "_responseJsonSchema"}
)
# A function's answer: one of these alone is the answer itself, not an object around it.
_ANSWERS = ("output", "result")


def read_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a request; `model` and `stream` as the URL says them, None: it does not. Raises
    BadRequest."""
    top = camel_members(body)
    config = camel_members(object_at(top, "generationConfig") or {})
    tools, other_tools = _tools(top)
    choice, allowed = _tool_choice(top)
    if allowed:
        tools = tuple(tool for tool in tools if tool.name in allowed)
    effort, budget = _thinking(config)
    path = "generationConfig"
    return ChatRequest(
        model=_model(model, top),
        messages=(*_system(top), *_messages(top)),
        stream=bool(stream),
        tools=tools,
        tool_choice=choice,
        json_mode=_json_mode(config),
        max_tokens=count_at(config, "maxOutputTokens", path=path),
        temperature=number_at(config, "temperature", path=path),
        top_p=number_at(config, "topP", path=path),
        top_k=count_at(config, "topK", path=path),
        stop=texts_at(config, "stopSequences", path=path),
        seed=seed_at(config, "seed", path=path),
        presence_penalty=number_at(config, "presencePenalty", path=path),
        frequency_penalty=number_at(config, "frequencyPenalty", path=path),
        reasoning_effort=effort,
        reasoning_tokens=budget,
        extra=_extra(top, config, other_tools),
        # What was cached by its name stands before all that is sent.
        is_fragment=bool(top.get("cachedContent")) or None,
    )


def _model(model: str | None, top: Object) -> str:
    name = (model or text_at(top, "model") or "").removeprefix("models/")
    if not name:
        raise BadRequest("model", "Name the model in the path: models/<model>:generateContent.")
    return name


# --- messages


def _system(top: Object) -> tuple[Message, ...]:
    value = top.get("systemInstruction")
    if value is None:
        return ()
    if isinstance(value, str):
        parts: tuple[Part, ...] = (Text(text=value),) if value else ()
    else:
        content = camel_members(object_item(value, "systemInstruction"))
        parts = tuple(_parts(content, "systemInstruction", CallIds()))
    return (Message(role=Role.SYSTEM, parts=parts),) if parts else ()


def _messages(top: Object) -> Iterator[Message]:
    ids = CallIds()
    for index, raw in enumerate(_one_or_more(top, "contents")):
        path = f"contents[{index}]"
        content = camel_members(object_item(raw, path))
        word = text_at(content, "role", path=path) or ""
        role = _ROLES.get(word.lower())
        if role is None:
            raise BadRequest(f"{path}.role", 'This has to be "user" or "model".')
        yield from _split(role, _parts(content, path, ids))


def _split(role: Role, parts: Iterator[Part]) -> Iterator[Message]:
    """Function responses stand in messages of their own; a message stays, if it is empty."""
    groups = [(is_result, tuple(run)) for is_result, run in groupby(parts, _is_result)]
    for is_result, run in groups or [(False, ())]:
        yield Message(role=Role.TOOL if is_result else role, parts=run)


def _is_result(part: Part) -> bool:
    return isinstance(part, ToolResult)


def _parts(content: Object, path: str, ids: CallIds) -> Iterator[Part]:
    for index, raw in enumerate(_one_or_more(content, "parts", path=path)):
        at = f"{path}.parts[{index}]"
        part = camel_members(object_item(raw, at))
        response = part.get("functionResponse")
        if isinstance(response, dict):
            yield _result(camel_members(response), f"{at}.functionResponse", ids)
        else:
            text_at(part, "text", path=at)
            yield from read_part(part, ids.call)


def _result(response: Object, path: str, ids: CallIds) -> ToolResult:
    given = text_at(response, "id", path=path)
    call_id, name = ids.result(text_at(response, "name", path=path), given)
    text, is_error = _answer(response.get("response"))
    images = tuple(
        part
        for raw in list_at(response, "parts", path=path)
        if isinstance(raw, dict)
        for part in read_part(raw, ids.call)
        if isinstance(part, Image)
    )
    texts = (Text(text=text),) if text else ()
    return ToolResult(call_id=call_id, parts=(*texts, *images), name=name, is_error=is_error)


def _answer(response: Json) -> tuple[str, bool]:
    """The answer's text, and whether it is an error (the vendor names both members so)."""
    if response is None:
        return "", False
    if isinstance(response, str):
        return response, False
    if isinstance(response, dict) and len(response) == 1:
        name, value = next(iter(response.items()))
        if name in _ANSWERS:
            return arguments_text(value), False
        if name == "error":
            return arguments_text(value), True
    return arguments_text(response), False


# --- tools


def _tools(top: Object) -> tuple[tuple[Tool, ...], list[Json]]:
    """The functions, and the tools that only Gemini has (its search, its code execution)."""
    tools: list[Tool] = []
    others: list[Json] = []
    for index, raw in enumerate(_one_or_more(top, "tools")):
        path = f"tools[{index}]"
        group = camel_members(object_item(raw, path))
        for at, item in enumerate(_one_or_more(group, "functionDeclarations", path=path)):
            where = f"{path}.functionDeclarations[{at}]"
            tools.append(_tool(camel_members(object_item(item, where)), where))
        rest = {name: value for name, value in group.items() if name != "functionDeclarations"}
        if rest:
            others.append(rest)
    return tuple(tools), others


def _tool(declaration: Object, path: str) -> Tool:
    name = text_at(declaration, "name", path=path)
    if not name:
        raise BadRequest(f"{path}.name", "A function needs a name.")
    parameters = object_at(declaration, "parametersJsonSchema", path=path)
    if parameters is None:
        parameters = to_json_schema(object_at(declaration, "parameters", path=path))
    description = text_at(declaration, "description", path=path)
    return Tool(name=name, description=description, parameters=parameters)


def _tool_choice(top: Object) -> tuple[ToolChoice | None, frozenset[str]]:
    """The choice, and the only functions that are allowed (none named: all of them)."""
    outer = camel_members(object_at(top, "toolConfig") or {})
    config = camel_members(object_at(outer, "functionCallingConfig", path="toolConfig") or {})
    path = "toolConfig.functionCallingConfig"
    allowed = texts_at(config, "allowedFunctionNames", path=path)
    match (text_at(config, "mode", path=path) or "").upper():
        case "" | "MODE_UNSPECIFIED":
            return None, frozenset()
        case "AUTO" | "VALIDATED":
            return ToolChoice(mode=Choice.AUTO), frozenset(allowed)
        case "NONE":
            return ToolChoice(mode=Choice.NONE), frozenset()
        case "ANY" if len(allowed) == 1:
            # The other tools stay declared: elsewhere the choice alone says which one.
            return ToolChoice(mode=Choice.ONE, name=allowed[0]), frozenset()
        case "ANY":
            return ToolChoice(mode=Choice.REQUIRED), frozenset(allowed)
        case _:
            raise BadRequest(f"{path}.mode", "This has to be AUTO, ANY, NONE or VALIDATED.")


# --- the rest of the configuration


def _json_mode(config: Object) -> JsonMode | None:
    path = "generationConfig"
    if text_at(config, "responseMimeType", path=path) != "application/json":
        return None
    schema = object_at(config, "responseJsonSchema", path=path)
    schema = schema or object_at(config, "_responseJsonSchema", path=path)
    if schema is None:
        schema = to_json_schema(object_at(config, "responseSchema", path=path))
    return JsonMode(schema=schema)


def _thinking(config: Object) -> tuple[str | None, int | None]:
    """Effort and limit of the reasoning; a budget of 0 is none, one below 0 is the model's own."""
    path = "generationConfig.thinkingConfig"
    thinking = camel_members(object_at(config, "thinkingConfig", path="generationConfig") or {})
    flag_at(thinking, "includeThoughts", path=path)
    level = (text_at(thinking, "thinkingLevel", path=path) or "").lower()
    effort = level if level in {"minimal", "low", "medium", "high"} else None
    budget = count_at(thinking, "thinkingBudget", path=path)
    if budget == 0:
        return "none", None
    return effort, budget if budget is not None and budget > 0 else None


def _extra(top: Object, config: Object, other_tools: list[Json]) -> dict[str, Json]:
    extra = {name: value for name, value in top.items() if name not in _READ_HERE}
    extra.pop("tools", None)
    extra.pop("generationConfig", None)
    read = _CONFIG_READ_HERE | (_JSON_READ_HERE if _json_mode(config) else frozenset())
    rest = {name: value for name, value in config.items() if name not in read}
    if rest:
        extra["generationConfig"] = rest
    if other_tools:
        extra["tools"] = other_tools
    return extra


def _one_or_more(body: Object, name: str, *, path: str = "") -> list[Json]:
    value = body.get(name)
    return [value] if isinstance(value, dict) else list_at(body, name, path=path)
