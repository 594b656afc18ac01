"""Messages of the OpenAI chat format, read from a client or a reply.

https://platform.openai.com/docs/api-reference/chat/create, and what its imitators add: reasoning
beside the content (quirks.py) and OpenRouter's reasoning_details, which carry a vendor's seal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helmdash.providers.errors import BadRequest
from helmdash.providers.quirks import REASONING_PLACES
from helmdash.providers.shared.images import image_from_url
from helmdash.providers.shared.members import object_item
from helmdash.providers.shared.tool_ids import arguments_text
from helmdash.providers.wire import (
    Image,
    Json,
    Message,
    Object,
    Other,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,  # before tools there were functions; their name was their id
}


# Whose messages say a text and nothing else.
_SPEAKERS = {word: role for word, role in _ROLES.items() if role is not Role.TOOL}
# Of a message that says one text and nothing else.
_PLAIN_MEMBERS = frozenset({"role", "content", "tool_call_id"})


def read_messages(value: Json) -> tuple[Message, ...]:
    """Read `messages`. Raises BadRequest naming the member."""
    if not isinstance(value, list) or not value:
        raise BadRequest("messages", "This has to be an array with at least one message.")
    messages: list[Message] = []
    for at, item in enumerate(value):
        # Nearly all say who speaks and one text, and nothing else: read without another call.
        if type(item) is dict and len(item) == 2:
            word, text = item.get("role"), item.get("content")
            role = _SPEAKERS.get(word) if type(word) is str else None
            if role is not None and type(text) is str and text:
                messages.append(Message(role=role, parts=(Text(text=text),)))
                continue
        messages.append(_read_plain(item) or _read_message(item, f"messages[{at}]"))
    return tuple(messages)


def _read_plain(item: Json) -> Message | None:
    """A message that says one text and nothing else, as nearly all do, read in one step; None: it
    is not one of these."""
    if not isinstance(item, dict):
        return None
    text, word = item.get("content"), item.get("role")
    if not isinstance(text, str) or not text or not _PLAIN_MEMBERS.issuperset(item):
        return None
    role = _SPEAKERS.get(word) if isinstance(word, str) else None
    if role is not None:
        return Message(role=role, parts=(Text(text=text),))
    call_id = item.get("tool_call_id")
    if word == "tool" and isinstance(call_id, str):
        result = ToolResult(call_id=call_id, parts=(Text(text=text),))
        return Message(role=Role.TOOL, parts=(result,))
    return None


def read_parts(message: Object, *, at: str = "message") -> tuple[Part, ...]:
    """The parts of an assistant message: reasoning, text, tool calls. Raises BadRequest."""
    parts: list[Part] = [*read_reasoning(message)]
    parts += read_content(message.get("content"), at=f"{at}.content")
    parts += read_tool_calls(message)
    return tuple(parts)


def read_content(value: Json, *, at: str) -> Iterator[Part]:
    """The parts of `content`: a string, a list of parts, or null. Raises BadRequest."""
    if value is None:
        return
    if isinstance(value, str):
        if value:
            yield Text(text=value)
        return
    if not isinstance(value, list):
        raise BadRequest(at, "This has to be a string or an array of parts.")
    for index, item in enumerate(value):
        yield _read_part(item, at=f"{at}[{index}]")


def read_reasoning(message: Object) -> Iterator[Reasoning]:
    """What the model thought, by the first of REASONING_PLACES that says it, with its seal."""
    text = reasoning_text(message)
    signature = reasoning_signature(message.get("reasoning_details"))
    if text or signature:
        yield Reasoning(text=text, signature=signature)


def reasoning_text(message: Object) -> str:
    """What the model thought, under whichever of the members that hosts use; "" for none."""
    for place in REASONING_PLACES:
        text = message.get(place.path[0])
        if isinstance(text, str) and text:
            return text
    details = message.get("reasoning_details")
    return _text_of_details(details) if isinstance(details, list) else ""


def reasoning_signature(details: Json) -> str | None:
    """The seal in OpenRouter's `reasoning_details`; None: there is none."""
    if not isinstance(details, list):
        return None
    found = (item.get("signature") for item in details if isinstance(item, dict))
    return next((seal for seal in found if isinstance(seal, str) and seal), None)


def read_tool_calls(message: Object) -> Iterator[ToolCall]:
    """The tool calls of an assistant message; one without an id is numbered."""
    calls = message.get("tool_calls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield _tool_call(function, call_id=call.get("id") or f"call_{index}")
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _tool_call(legacy, call_id=str(legacy.get("name") or "call_0"))


def thinking_text(item: Object) -> str:
    """What Mistral's models thought: the joined texts of {"type": "thinking", "thinking": [{"text":
    …}]}."""
    inner = item.get("thinking")
    if isinstance(inner, str):
        return inner
    items = inner if isinstance(inner, list) else ()
    texts = (part.get("text") for part in items if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _read_message(item: Json, at: str) -> Message:
    message = object_item(item, at)
    word = message.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise BadRequest(f"{at}.role", f"This has to be one of {', '.join(_ROLES)}.")
    name = message.get("name")
    return Message(
        role=role,
        parts=_parts_of_role(role, message, at),
        name=name if isinstance(name, str) and role is not Role.TOOL else None,
    )


def _parts_of_role(role: Role, item: Object, at: str) -> tuple[Part, ...]:
    if role is Role.TOOL:
        return (_tool_result(item, at),)
    if role is not Role.ASSISTANT:
        return tuple(read_content(item.get("content"), at=f"{at}.content"))
    parts = read_parts(item, at=at)
    refusal = item.get("refusal")
    return (*parts, Text(text=refusal)) if isinstance(refusal, str) and refusal else parts


def _tool_result(item: Object, at: str) -> ToolResult:
    name = item.get("name")
    call_id = item.get("tool_call_id") or name or ""
    if not isinstance(call_id, str):
        raise BadRequest(f"{at}.tool_call_id", "This has to be a string.")
    content = tuple(read_content(item.get("content"), at=f"{at}.content"))
    return ToolResult(
        call_id=call_id,
        parts=tuple(part for part in content if isinstance(part, Text | Image)),
        name=name if isinstance(name, str) else None,
    )


def _read_part(item: Json, *, at: str) -> Part:
    if isinstance(item, str):
        return Text(text=item)
    part = object_item(item, at)
    match part.get("type"):
        case "text" | "input_text" | "output_text" if isinstance(part.get("text"), str):
            # OpenRouter's word for the end of a cacheable prefix; it is Anthropic's.
            is_marked = "cache_control" in part and isinstance(part["cache_control"], dict)
            return Text(text=part["text"], cache=is_marked or None)
        case "refusal" if isinstance(part.get("refusal"), str):
            return Text(text=part["refusal"])
        case "image_url" | "input_image":
            return _read_image(part, at=at)
        case "thinking":
            return Reasoning(text=thinking_text(part))
        case "text":
            raise BadRequest(f"{at}.text", "This has to be a string.")
        case str(kind):
            return Other(kind=kind, raw=part)
        case _:
            raise BadRequest(f"{at}.type", "This has to be a string.")


def _read_image(item: Object, *, at: str) -> Image:
    image = item.get("image_url")
    detail = item.get("detail")
    if isinstance(image, dict):
        detail = image.get("detail")
        image = image.get("url")
    if not isinstance(image, str) or not image:
        raise BadRequest(f"{at}.image_url.url", "This has to be an http or data URL.")
    return image_from_url(image, detail=detail if isinstance(detail, str) else None)


def _tool_call(function: Object, *, call_id: Json) -> ToolCall:
    return ToolCall(
        id=str(call_id),
        name=str(function.get("name") or ""),
        arguments=arguments_text(function.get("arguments")),
    )


def _text_of_details(details: Sequence[Json]) -> str:
    items = (item for item in details if isinstance(item, dict))
    texts = (item.get("text") or item.get("summary") for item in items)
    return "".join(text for text in texts if isinstance(text, str))
