"""Requests to Gemini: a ChatRequest, a client's own bytes, lists of models, embeddings, counts.

JSON Schemas go into `parametersJsonSchema` and `responseJsonSchema`, which take JSON Schema as it
is. The older `parameters` and `responseSchema` take Gemini's own subset and answer `$ref`,
`additionalProperties` or `const`, which generators of schemas write as a matter of course, with
a 400 (https://ai.google.dev/gemini-api/docs/structured-output).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.gemini.http import chat_method, post
from helmdash.providers.gemini.parts import write_image, write_request_parts
from helmdash.providers.gemini.thinking import thinking_config, thinking_of
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.members import body_of, without_nones
from helmdash.providers.shared.tool_ids import is_derived, names_of_calls, object_of, result_text
from helmdash.providers.wire import (
    ChatRequest,
    Choice,
    Image,
    Json,
    Message,
    Other,
    Part,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

# What Google accepts on a call that another model made (https://ai.google.dev/gemini-api/docs/
# thought-signatures, "migrating from other models").
_FOREIGN_SEAL = "skip_thought_signature_validator"
_MODES = {Choice.AUTO: "AUTO", Choice.NONE: "NONE", Choice.REQUIRED: "ANY", Choice.ONE: "ANY"}


def write_request(request: ChatRequest, *, endpoint: Endpoint, model: str) -> HttpRequest:
    """Write a request. Raises CannotTranslate for parts that only another format knows."""
    names = names_of_calls(request.messages)
    system = [part for message in request.messages for part in _system_parts(message)]
    contents = _merged(_content(message, names, model) for message in request.messages)
    if not contents:
        # Gemini wants something to answer; elsewhere a system message alone will do.
        contents, system = [{"role": "user", "parts": system}], []
    body = without_nones(
        contents=contents,
        systemInstruction={"parts": system} if system else None,
        tools=_tools(request.tools),
        toolConfig=_tool_config(request.tool_choice) if request.tools else None,
        generationConfig=_config(request, model) or None,
    )
    return post(endpoint, model, chat_method(stream=request.stream), body_of(body))


# --- messages


def _system_parts(message: Message) -> list[dict[str, Json]]:
    """Gemini has one system instruction, before everything: later ones move there, in order."""
    if message.role is not Role.SYSTEM:
        return []
    return [{"text": part.text} for part in message.parts if isinstance(part, Text) and part.text]


def _content(message: Message, names: dict[str, str], model: str) -> dict[str, Json] | None:
    match message.role:
        case Role.SYSTEM:
            return None
        case Role.ASSISTANT:
            return {"role": "model", "parts": _model_parts(message.parts, model)}
        case Role.USER | Role.TOOL:
            return {"role": "user", "parts": list(_user_parts(message.parts, names))}


def _model_parts(parts: tuple[Part, ...], model: str) -> list[dict[str, Json]]:
    for part in parts:
        _check(part)
    written = write_request_parts(parts)
    if thinking_of(model).wants_seal:
        _seal_first_call(written)
    return written


def _seal_first_call(parts: list[dict[str, Json]]) -> None:
    """The first of several calls at once carries the signature, the others none."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", _FOREIGN_SEAL)


def _user_parts(parts: tuple[Part, ...], names: dict[str, str]) -> Iterator[dict[str, Json]]:
    for part in parts:
        _check(part)
        if isinstance(part, ToolResult):
            yield {"functionResponse": _function_response(part, names)}
        elif not isinstance(part, ToolCall):
            yield from write_request_parts((part,))


def _function_response(result: ToolResult, names: dict[str, str]) -> dict[str, Json]:
    name = result.name or names.get(result.call_id)
    if name is None:
        raise CannotTranslate(
            f"Gemini needs the name of the function that {result.call_id[:100]!r} answers, and"
            " no message before it makes that call."
        )
    images = [write_image(part) for part in result.parts if isinstance(part, Image)]
    return without_nones(
        id=None if is_derived(result.call_id) else result.call_id,
        name=name,
        response=_response(result),
        parts=images or None,
    )


def _response(result: ToolResult) -> dict[str, Json]:
    """The members are the vendor's words for an answer and for an error."""
    text = result_text(result)
    if result.is_error:
        return {"error": text}
    value = object_of(text)
    return {"output": text} if value is None else value


def _check(part: Part) -> None:
    if isinstance(part, Other):
        raise CannotTranslate(f"A part of the kind {part.shown_kind!r} cannot be sent to Gemini.")


def _merged(contents: Iterable[dict[str, Json] | None]) -> list[dict[str, Json]]:
    """Contents of one role in a row are one: answers to calls made at once belong together."""
    found: list[dict[str, Json]] = []
    for content in contents:
        if content is None or not content["parts"]:
            continue
        if found and found[-1]["role"] == content["role"]:
            found[-1]["parts"].extend(content["parts"])
        else:
            found.append(content)
    return found


# --- tools and configuration


def _tools(tools: tuple[Tool, ...]) -> list[Json] | None:
    if not tools:
        return None
    declarations = [
        without_nones(
            name=tool.name, description=tool.description, parametersJsonSchema=tool.parameters
        )
        for tool in tools
    ]
    return [{"functionDeclarations": declarations}]


def _tool_config(choice: ToolChoice | None) -> dict[str, Json] | None:
    if choice is None:
        return None
    allowed = [choice.name] if choice.mode is Choice.ONE and choice.name else None
    config = without_nones(mode=_MODES[choice.mode], allowedFunctionNames=allowed)
    return {"functionCallingConfig": config}


def _config(request: ChatRequest, model: str) -> dict[str, Json]:
    wants_json = request.json_mode is not None
    schema = request.json_mode.schema if request.json_mode else None
    return without_nones(
        maxOutputTokens=request.max_tokens,
        temperature=request.temperature,
        topP=request.top_p,
        topK=request.top_k,
        stopSequences=list(request.stop) or None,
        seed=request.seed,
        presencePenalty=request.presence_penalty,
        frequencyPenalty=request.frequency_penalty,
        responseMimeType="application/json" if wants_json else None,
        responseJsonSchema=schema,
        thinkingConfig=thinking_config(model, request.reasoning_effort, request.reasoning_tokens),
    )
