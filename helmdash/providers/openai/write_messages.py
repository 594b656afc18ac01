"""Messages of the OpenAI chat format, written for an upstream or a client."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from helmdash.providers.errors import CannotTranslate
from helmdash.providers.quirks import Quirk
from helmdash.providers.shared.images import url_of_image
from helmdash.providers.wire import (
    Image,
    Json,
    Message,
    Other,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

# Parts that no field of ours covers, yet every OpenAI-compatible upstream may know.
_OWN_KINDS = frozenset({"input_audio", "file", "video_url", "audio_url"})

_MARK = {"type": "ephemeral"}
_SHORT_ID_CHARS = 9  # Mistral: "a-z, A-Z, 0-9, with a length of 9"


def write_messages(
    messages: Sequence[Message], *, quirk: Quirk, marks_cache: bool = False
) -> list[dict[str, Json]]:
    """The messages for an upstream. Raises CannotTranslate for a part no one else knows.

    `marks_cache`: the model wants to be told where a cacheable prefix ends (quirks.marks_cache).

    A tool's answer can only be text here: its images follow in a user message, after the answers
    that stand together.
    """
    written: list[dict[str, Json]] = []
    images: list[Image] = []
    for message in messages:
        if message.role is not Role.TOOL and images:
            written.append(_images_of_tools(images))
            images = []
        written += _write_message(message, quirk, marks_cache=marks_cache)
        images += _tool_images(message)
    if images:
        written.append(_images_of_tools(images))
    return written


def write_assistant(parts: Sequence[Part], *, quirk: Quirk) -> dict[str, Json]:
    """An assistant message as an upstream wants it back."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    content = _content([part for part in parts if not isinstance(part, ToolCall)], quirk)
    message: dict[str, Json] = {"role": "assistant", "content": content or None}
    if calls:
        message["tool_calls"] = [_write_tool_call(call, quirk) for call in calls]
    elif content is None or content == "":
        message["content"] = ""  # null is only allowed beside tool calls
    if quirk.reasoning_back is not None:
        message |= _reasoning_back(parts, quirk.reasoning_back)
    return message


def reasoning_details(text: str | None, signature: str) -> list[dict[str, Json]]:
    """OpenRouter's form of reasoning that has a seal; text None: the seal alone."""
    said = {} if text is None else {"text": text}
    return [{"type": "reasoning.text", **said, "signature": signature}]


def write_tool_call(call: ToolCall) -> dict[str, Json]:
    """A call of a tool as a message of the history has it, not as the deltas of a stream."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _write_message(message: Message, quirk: Quirk, *, marks_cache: bool) -> list[dict[str, Json]]:
    named = {"name": message.name} if message.name is not None else {}
    match message.role:
        case Role.TOOL:
            return _write_results(message, quirk)
        case Role.ASSISTANT:
            return [write_assistant(message.parts, quirk=quirk) | named]
        case role:
            content = _content(message.parts, quirk)
            if marks_cache:
                content = _marked_content(message.parts) or content
            return [{"role": role.value, "content": content or "", **named}]


def _write_results(message: Message, quirk: Quirk) -> list[dict[str, Json]]:
    written: list[dict[str, Json]] = [
        {
            "role": "tool",
            "tool_call_id": _call_id(part.call_id, quirk),
            "content": "\n".join(text.text for text in part.parts if isinstance(text, Text)),
        }
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    if rest:
        written.append({"role": "user", "content": _content(rest, quirk) or ""})
    return written


def _tool_images(message: Message) -> list[Image]:
    results = (part for part in message.parts if isinstance(part, ToolResult))
    return [part for result in results for part in result.parts if isinstance(part, Image)]


def _images_of_tools(images: Sequence[Image]) -> dict[str, Json]:
    said = {"type": "text", "text": "Images of the tool results above:"}
    return {"role": "user", "content": [said, *map(_write_image, images)]}


def _content(parts: Sequence[Part], quirk: Quirk) -> Json:
    """One text as a string, anything more as a list of parts; None for nothing."""
    shown = [part for part in parts if not isinstance(part, Reasoning)]
    texts = [part.text for part in shown if isinstance(part, Text)]
    if len(texts) == len(shown) and (len(texts) == 1 or quirk.joins_text):
        return "\n\n".join(texts) if texts else None
    return [_write_part(part) for part in shown] or None


def _marked_content(parts: Sequence[Part]) -> list[dict[str, Json]]:
    """The parts, with a mark on each text where a cacheable prefix ends; none without a mark."""
    if not any(isinstance(part, Text) and part.cache for part in parts):
        return []
    shown = [part for part in parts if not isinstance(part, Reasoning)]
    return [
        _write_part(part)
        | ({"cache_control": _MARK} if isinstance(part, Text) and part.cache else {})
        for part in shown
    ]


def _write_part(part: Part) -> dict[str, Json]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image():
            return _write_image(part)
        case Other(kind=kind, raw=raw) if kind in _OWN_KINDS:
            return dict(raw)
        case Other():
            raise CannotTranslate(
                f"A part of the type {part.shown_kind} cannot be said in OpenAI's format."
            )
        case _:
            raise CannotTranslate("Tool calls and their results have messages of their own.")


def _write_image(image: Image) -> dict[str, Json]:
    detail = {"detail": image.detail} if image.detail is not None else {}
    return {"type": "image_url", "image_url": {"url": url_of_image(image), **detail}}


def _write_tool_call(call: ToolCall, quirk: Quirk) -> dict[str, Json]:
    return write_tool_call(call) | {
        "id": _call_id(call.id, quirk),
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }


def _call_id(call_id: str, quirk: Quirk) -> str:
    """The id as the vendor takes it: the same one always becomes the same one."""
    if not quirk.short_call_ids or _is_short(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "replace")).digest()
    return base64.b32encode(digest).decode()[:_SHORT_ID_CHARS]


def _is_short(call_id: str) -> bool:
    return len(call_id) == _SHORT_ID_CHARS and call_id.isascii() and call_id.isalnum()


def _reasoning_back(parts: Sequence[Part], member: str) -> dict[str, Json]:
    thought = [part for part in parts if isinstance(part, Reasoning)]
    text = "".join(part.text for part in thought)
    seals = [part for part in thought if part.signature is not None]
    back: dict[str, Json] = {member: text} if text else {}
    if seals and member == "reasoning":  # OpenRouter hands them on to Anthropic and Google
        back["reasoning_details"] = [
            detail
            for part in seals
            if part.signature is not None
            for detail in reasoning_details(part.text, part.signature)
        ]
    return back
