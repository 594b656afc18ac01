"""Messages as the items of a Responses request, for an upstream.

https://platform.openai.com/docs/api-reference/responses/create. System messages stay items in their
places: hosts look for the word JSON, which a JSON mode needs, among the items alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from helmdash.providers.errors import CannotTranslate
from helmdash.providers.openai_responses.items.calls import FUNCTION
from helmdash.providers.shared.images import url_of_image
from helmdash.providers.shared.reported import object_in
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


def write_input(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """The items. Raises CannotTranslate for a part that no one else knows.

    Thoughts stay here: a host takes none that it has not sealed itself.
    """
    return [item for message in messages for item in _items(message)]


def _items(message: Message) -> Iterator[dict[str, Json]]:
    match message.role:
        case Role.ASSISTANT:
            yield from _said(message.parts)
        case Role.TOOL:
            rest = [part for part in message.parts if not isinstance(part, ToolResult)]
            for part in message.parts:
                if isinstance(part, ToolResult):
                    output = _content(part.parts) or ""
                    kind = f"{FUNCTION}_output"
                    yield {"type": kind, "call_id": part.call_id, "output": output}
            if rest:
                yield {"role": "user", "content": _content(rest) or ""}
        case role:
            yield {"role": role.value, "content": _content(message.parts) or ""}


def _said(parts: Sequence[Part]) -> Iterator[dict[str, Json]]:
    """What a model said, texts and calls in their order; a text that calls part is two."""
    texts: list[Part] = []
    is_empty = True
    for part in parts:
        if not isinstance(part, ToolCall):
            texts.append(part)
            continue
        yield from _message(texts)
        texts, is_empty = [], False
        yield {
            "type": FUNCTION,
            "call_id": part.id,
            "name": part.name,
            "arguments": part.arguments or "{}",
        }
    yield from _message(texts)
    if is_empty and not any(isinstance(part, Text) for part in parts):
        yield {"role": "assistant", "content": ""}


def _message(parts: Sequence[Part]) -> Iterator[dict[str, Json]]:
    """A message of the model's own holds texts only."""
    shown = [part for part in parts if not isinstance(part, Reasoning)]
    for part in shown:
        if not isinstance(part, Text):
            raise CannotTranslate(_unsaid(part))
    if shown:
        said = "".join(part.text for part in shown if isinstance(part, Text))
        yield {"role": "assistant", "content": said}


def _content(parts: Sequence[Part]) -> Json:
    """One text as a string, anything more as a list of parts; None for nothing."""
    shown = [part for part in parts if not isinstance(part, Reasoning)]
    if len(shown) == 1 and isinstance(shown[0], Text):
        return shown[0].text
    return [_write_part(part) for part in shown] or None


def _write_part(part: Part) -> dict[str, Json]:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case Image():
            detail = {"detail": part.detail} if part.detail is not None else {}
            return {"type": "input_image", "image_url": url_of_image(part), **detail}
        case Other(kind="file", raw=raw) if file := object_in(raw, "file"):
            return {"type": "input_file", **file}
        case _:
            raise CannotTranslate(_unsaid(part))


def _unsaid(part: Part) -> str:
    if isinstance(part, Other):
        return f"A part of the type {part.shown_kind} cannot be said in the Responses API."
    if isinstance(part, Image):
        return "The Responses API takes no images that a model has said."
    return "Tool calls and their results have messages of their own."
