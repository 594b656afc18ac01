"""Whole replies of the Messages API, read and written (platform.claude.com/docs/en/api/messages).

Written from another vendor's reply, images are left out: an assistant's message has no block for
them. Arguments of a tool that are no JSON object go into a member of the input of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from helmdash.core.text.jsontext import TooDeep
from helmdash.providers.anthropic.abilities.json_mode import json_tool_in
from helmdash.providers.anthropic.context_edits import edits_of_reply
from helmdash.providers.anthropic.errors import error_of
from helmdash.providers.anthropic.exact_json import read_exactly, to_json
from helmdash.providers.anthropic.outcomes import (
    message_id,
    refusal_of,
    stop_details_of,
    stop_reason_of,
    usage_of,
)
from helmdash.providers.anthropic.write_messages import OWN_BLOCKS, input_of
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    ChatRequest,
    Json,
    Object,
    Other,
    Part,
    Reasoning,
    Reply,
    Text,
    ToolCall,
    WireError,
)


def read_reply(body: bytes, *, request: ChatRequest) -> Reply:
    """Read the body of a 200. Never raises: see `Reply.error`.

    A reply that came through the tool for JSON mode becomes text, and its `tool_use` an
    `end_turn`: the client never knew of that tool. Text beside it would spoil the JSON and is
    left out.
    """
    try:
        parsed = read_exactly(body)
    except ValueError:
        return _unreadable("The reply is not JSON.")
    if not isinstance(parsed, dict):
        return _unreadable("The reply is not an object.")
    try:
        return _reply_of(parsed, request=request)
    except TooDeep:
        return _unreadable("The arguments of a tool are nested too deeply.")


def _reply_of(parsed: dict[str, Json], *, request: ChatRequest) -> Reply:
    error = error_of(parsed)
    if error is not None:
        return Reply(error=error)
    content = parsed.get("content")
    if not isinstance(content, list):
        return _unreadable("The reply has no list of content blocks.")
    edits = edits_of_reply(parsed, content)
    json_tool = json_tool_in(request)
    if any(_is_json_reply(block, json_tool=json_tool) for block in content):
        content = [block for block in content if not _is_text(block)]
    parts = tuple(
        part for block in content if (part := _part(block, json_tool=json_tool)) is not None
    )
    return Reply(
        id=text_in(parsed, "id"),
        model=text_in(parsed, "model"),
        parts=parts,
        refusal=refusal_of(parsed.get("stop_details")),
        finish_reason=_finish(parsed.get("stop_reason"), parts, json_tool=json_tool),
        usage=object_in(parsed, "usage"),
        context_edits=edits,
    )


def is_unasked_tool_end(reason: str, *, json_tool: str | None, has_calls: bool) -> bool:
    """Whether a reply stopped for the tool of JSON mode only. json_tool None: the request had
    none."""
    return json_tool is not None and reason == "tool_use" and not has_calls


def write_reply(reply: Reply, *, answer: ReplyContext) -> bytes:
    """A whole reply as Anthropic sends it."""
    return to_json(
        {
            "id": message_id(reply.id, answer.call_id),
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [block for part in reply.parts if (block := _block(part)) is not None],
            "stop_reason": stop_reason_of(
                reply.finish_reason,
                has_calls=bool(reply.tool_calls),
                has_refusal=reply.refusal is not None,
            ),
            "stop_sequence": None,
            "stop_details": stop_details_of(reply.refusal),
            "usage": usage_of(reply.usage),
        }
    )


# --- reading


def _unreadable(message: str) -> Reply:
    return Reply(error=WireError(message=message, code=UNDECODABLE_REPLY))


def _finish(reason: Json, parts: tuple[Part, ...], *, json_tool: str | None) -> str | None:
    if not isinstance(reason, str):
        return None
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    if is_unasked_tool_end(reason, json_tool=json_tool, has_calls=has_calls):
        return "end_turn"
    return reason


def _is_json_reply(block: Json, *, json_tool: str | None) -> bool:
    if json_tool is None or not isinstance(block, dict):
        return False
    return block.get("type") == "tool_use" and bool(block.get("name") == json_tool)


def _is_text(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _part(block: Json, *, json_tool: str | None) -> Part | None:
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if _is_json_reply(block, json_tool=json_tool):
        return Text(text=to_json(block.get("input")).decode())
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return read(block)
    return Other(kind=kind, raw=block) if isinstance(kind, str) else None


def _read_text(block: Object) -> Part | None:
    text = text_in(block, "text")
    return Text(text=text) if text else None


def _read_thought(block: Object) -> Part | None:
    text = text_in(block, "thinking") or ""
    signature = text_in(block, "signature")
    return Reasoning(text=text, signature=signature) if text or signature else None


def _read_call(block: Object) -> Part | None:
    value = block.get("input")
    return ToolCall(
        id=text_in(block, "id") or "",
        name=text_in(block, "name") or "",
        arguments="" if value is None else to_json(value).decode(),
    )


_READERS: dict[str, Callable[[Object], Part | None]] = {
    "text": _read_text,
    "thinking": _read_thought,
    "tool_use": _read_call,
}


# --- writing


def _block(part: Part) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case Reasoning():
            return {
                "type": "thinking",
                "thinking": part.text,
                "signature": part.signature or "",
            }
        case ToolCall():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": input_of(part.arguments),
            }
        case Other() if part.kind in OWN_BLOCKS:
            return dict(part.raw)
        case _:
            return None
