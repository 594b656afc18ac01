"""What a request says, reduced: for recognizing its conversation, and for keeping its texts.

Both are made from the neutral messages, so that one conversation is one whatever API it came by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import orjson

from helmdash.core.conversations.called_tools import (
    MOST_CALLS,
    WRITTEN_RESULT,
    call_fingerprint,
    written_calls,
)
from helmdash.core.conversations.fingerprints import (
    MOST_CALLED,
    NO_CALL,
    ChainLinks,
    ChatTraces,
    ChatTurn,
    ToolCalled,
)
from helmdash.core.conversations.kept_replies import reply_fingerprint
from helmdash.providers.wire import (
    ChatRequest,
    Image,
    Message,
    Other,
    Part,
    Reasoning,
    Reply,
    Role,
    Text,
    ToolCall,
    ToolResult,
)


def turns_of(messages: Iterable[Message]) -> list[ChatTurn]:
    """The messages as the conversation rule compares them."""
    turns: list[ChatTurn] = []
    for message in messages:
        parts = message.parts
        only = parts[0] if len(parts) == 1 else None
        # Nearly all say one text.
        text = only.text.strip() if type(only) is Text else _turn_text(parts)
        # As `ChatTurn(…)` makes it, at a third of the time. A role is a word already.
        turns.append(tuple.__new__(ChatTurn, (message.role, text)))
    return turns


def traces_of(request: ChatRequest) -> ChatTraces:
    """What the request leaves to be known by."""
    return ChatTraces(
        turns_of(request.messages),
        calls=_answered_calls(request.messages),
        called=partial(_newest_calls, request.messages),
    )


def _answered_calls(messages: Sequence[Message]) -> tuple[str, ...]:
    """The fingerprints of the newest reply's tool calls, where nobody has spoken since."""
    found: list[str] = []
    for message in reversed(messages):
        if len(found) == MOST_CALLS:
            break
        if message.role is Role.ASSISTANT:
            told = filter(None, (call_fingerprint(*call) for call in _calls_of(message.parts)))
            found += islice(told, MOST_CALLS - len(found))
        elif message.role is not Role.TOOL and not (_is_written_result(message) and not found):
            break
    return tuple(found)


def _newest_calls(messages: Sequence[Message]) -> list[ToolCalled]:
    """Of the newest replies, the newest first, the tool call that each ends with."""
    found: list[ToolCalled] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            found.append(next(_calls_of(message.parts), NO_CALL))
            if len(found) == MOST_CALLED:
                break
    return found


def _call_fingerprint(part: Part) -> str:
    return call_fingerprint(part.id, part.name) if isinstance(part, ToolCall) else ""


def _calls_of(parts: Sequence[Part]) -> Iterator[ToolCalled]:
    """The tool calls of a reply that is sent back, the last first."""
    for part in reversed(parts):
        if type(part) is ToolCall:
            yield part.id, part.name
        elif type(part) is Text:
            yield from [(call_id, "") for call_id in reversed(written_calls(part.text))]


def _is_written_result(message: Message) -> bool:
    first = message.parts[0] if message.parts else None
    return type(first) is Text and first.text.startswith(WRITTEN_RESULT)


def reply_turn(reply: Reply) -> ChatTurn | None:
    """The reply as the rule sees it; None when there was none."""
    text = _turn_text(reply.parts)
    return ChatTurn(role="assistant", text=text) if text else None


def call_links(
    request: ChatRequest, traces: ChatTraces, reply: Reply, *, is_retry: bool, kept_id: str | None
) -> ChainLinks:
    """The traces of a call that has ended, by which the next one finds its conversation.

    traces: those of the request. kept_id: the id of the reply, where its provider keeps it; None:
    it does not.
    """
    return traces.links(
        reply=reply_turn(reply),
        is_retry=is_retry,
        is_stream=request.stream,
        kept=reply_fingerprint(kept_id or ""),
        after=reply_fingerprint(request.continues or ""),
        called=next(filter(None, map(_call_fingerprint, reversed(reply.parts))), ""),
    )


def kept_messages(request: ChatRequest) -> tuple[Mapping[str, Any], ...]:
    """The messages as they are stored where a project keeps texts: one shape for all vendors.

    Images are kept as their type, size and digest: a picture tells nothing about context health
    and would be most of the database.
    """
    return tuple(_kept(message) for message in request.messages)


def _turn_text(parts: Iterable[Part]) -> str:
    texts = [
        part.text.strip() if type(part) is Text else _part_text(part)  # nearly all are texts
        for part in parts
    ]
    return texts[0] if len(texts) == 1 else "\n".join(filter(None, texts))


def _part_text(part: Part) -> str:
    """Ids of tool calls are left out: some clients make them up anew with every request."""
    match part:
        case Text():
            return part.text.strip()
        case Reasoning():
            return ""  # clients drop it when they send the history back
        case ToolCall():
            return f"call {part.name} {_arguments(part.arguments)}"
        case ToolResult():
            return f"result {_turn_text(part.parts)}"
        case Image():
            return f"image {_digest(part)}"
        case Other(is_omissible=True):
            return ""  # what a provider did by itself comes back with some requests only
        case Other():
            return f"part {part.kind}"


def _arguments(text: str) -> str:
    """One text for one value: some formats send arguments back as an object."""
    try:
        return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()
    except (ValueError, TypeError):
        return text


def _digest(image: Image) -> str:
    said = image.url or image.data or ""
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _kept(message: Message) -> dict[str, Any]:
    kept: dict[str, Any] = {"role": message.role.value}
    if message.name:
        kept["name"] = message.name
    if all(isinstance(part, Text) for part in message.parts):
        kept["content"] = message.text
    else:
        kept["content"] = [_kept_part(part) for part in message.parts]
    return kept


def _kept_part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Reasoning():
            return {"type": "reasoning", "text": part.text}
        case ToolCall():
            return {
                "type": "tool_call",
                "id": part.id,
                "name": part.name,
                "arguments": part.arguments,
            }
        case ToolResult():
            content = [_kept_part(inner) for inner in part.parts]
            kept = {"type": "tool_result", "call_id": part.call_id, "content": content}
            return kept | ({"is_error": True} if part.is_error else {})
        case Image():
            return {
                "type": "image",
                "media_type": part.media_type,
                "bytes": len(part.data or "") * 3 // 4 or None,
                "url": part.url,
                "sha256": _digest(part),
            }
        case Other():
            return {"type": part.kind, "left_out": True}
