"""The messages of a client's Messages request, read into our words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.errors import BadRequest
from helmdash.providers.shared.members import (
    filled_text_at,
    flag_at,
    object_item,
    required_object_at,
    required_text_at,
    text_at,
)
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


def read_system(value: Json, path: str) -> tuple[Message, ...]:
    """The instructions as at most one message. Raises BadRequest naming the member."""
    parts = tuple(_content(value, path)) if value is not None else ()
    for index, part in enumerate(parts):
        if not isinstance(part, Text):
            raise BadRequest(f"{path}.{index}.type", "System prompts are made of text blocks.")
    return (Message(role=Role.SYSTEM, parts=parts),) if parts else ()


def read_messages(value: Json, *, may_be_none: bool = False) -> Iterable[Message]:
    """The messages in order; a user's tool results become messages of their own. may_be_none: what
    the server keeps may be all. Raises BadRequest naming the member."""
    if not isinstance(value, list) or not (value or may_be_none):
        raise BadRequest("messages", "Send a list with at least one message.")
    for index, item in enumerate(value):
        yield from _message(item, f"messages.{index}")


def _message(item: Json, path: str) -> Iterable[Message]:
    message = object_item(item, path)
    role = message.get("role")
    content = message.get("content")
    if role == "system":
        yield from read_system(content, f"{path}.content")
    elif role == "assistant":
        yield Message(role=Role.ASSISTANT, parts=tuple(_content(content, f"{path}.content")))
    elif role == "user":
        yield from _split_user(_content(content, f"{path}.content"))
    else:
        raise BadRequest(f"{path}.role", 'Use "user" or "assistant".')


def _split_user(parts: list[Part]) -> Iterable[Message]:
    """Tool results stand in messages of their own; the order of the blocks stays."""
    if not parts:
        yield Message(role=Role.USER, parts=())
    for is_result, group in groupby(parts, key=_is_result):
        yield Message(role=Role.TOOL if is_result else Role.USER, parts=tuple(group))


def _is_result(part: Part) -> bool:
    if isinstance(part, Other):
        return part.kind == "tool_result"
    return isinstance(part, ToolResult)


def _content(value: Json, path: str) -> list[Part]:
    if isinstance(value, str):
        return [Text(text=value)] if value else []
    if not isinstance(value, list):
        raise BadRequest(path, "Send text or a list of content blocks.")
    return [_block(item, f"{path}.{index}") for index, item in enumerate(value)]


def _block(item: Json, path: str) -> Part:
    block = object_item(item, path)
    kind = filled_text_at(block, "type", path=path, fix="Name the kind of the block.")
    read = _BLOCKS.get(kind)
    return read(block, path) if read else Other(kind=kind, raw=block)


def _text(block: Object, path: str) -> Part:
    is_marked = "cache_control" in block and isinstance(block["cache_control"], dict)
    return Text(text=required_text_at(block, "text", path=path), cache=is_marked or None)


def _image(block: Object, path: str) -> Part:
    source = required_object_at(block, "source", path=path)
    match source.get("type"):
        case "base64":
            return Image(
                media_type=filled_text_at(source, "media_type", path=f"{path}.source"),
                data=filled_text_at(source, "data", path=f"{path}.source"),
            )
        case "url":
            return Image(url=filled_text_at(source, "url", path=f"{path}.source"))
        case str():
            return Other(kind="image", raw=block)  # a file that was uploaded to Anthropic
        case _:
            raise BadRequest(f"{path}.source.type", 'Use "base64" or "url".')


def _thought(block: Object, path: str) -> Part:
    return Reasoning(
        text=required_text_at(block, "thinking", path=path),
        # A thought of another vendor went out with an empty seal; it comes back without one.
        signature=text_at(block, "signature", path=path) or None,
    )


def _tool_use(block: Object, path: str) -> Part:
    return ToolCall(
        id=filled_text_at(block, "id", path=path),
        name=filled_text_at(block, "name", path=path),
        arguments=to_json(required_object_at(block, "input", path=path)).decode(),
    )


def _tool_result(block: Object, path: str) -> Part:
    content = block.get("content")
    parts = [] if content is None else _content(content, f"{path}.content")
    plain = tuple(part for part in parts if isinstance(part, Text | Image))
    if len(plain) != len(parts):
        return Other(kind="tool_result", raw=block)  # it holds a document or a search result
    return ToolResult(
        call_id=filled_text_at(block, "tool_use_id", path=path),
        parts=plain,
        is_error=flag_at(block, "is_error", path=path) or False,
    )


_BLOCKS: dict[str, Callable[[Object, str], Part]] = {
    "text": _text,
    "image": _image,
    "thinking": _thought,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
