"""A conversation in our words, as the turns the Messages API accepts.

Instructions go to `system`, empty text is left out, turns alternate and begin with the user; a
part that only another format knows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from helmdash.providers.anthropic.abilities.traits import Traits
from helmdash.providers.anthropic.exact_json import from_json
from helmdash.providers.anthropic.seals import is_sealed
from helmdash.providers.errors import CannotTranslate
from helmdash.providers.shared.tool_ids import UNREADABLE_ARGUMENTS
from helmdash.providers.wire import (
    ChatRequest,
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

# Blocks of Anthropic's that have no words of ours; they may go back where they came from.
OWN_BLOCKS = frozenset(
    """document image redacted_thinking search_result server_tool_use tool_result
    web_search_tool_result web_fetch_tool_result code_execution_tool_result
    bash_code_execution_tool_result text_editor_code_execution_tool_result
    tool_search_tool_result container_upload mcp_tool_use mcp_tool_result compaction""".split()
)

# Said where the API insists on words and the client has none.
_NO_WORDS = "(no text)"
_GO_ON = "Go on."
_BEGINNING = "(the conversation begins with your message)"

_NOT_IN_AN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def write_conversation(request: ChatRequest, notes: list[str], traits: Traits) -> dict[str, Any]:
    """The members `system` and `messages`; `notes` are added to the instructions."""
    system = [block for message in request.messages for block in _system_blocks(message)]
    turns = _turns(request.messages)
    if not turns:  # the API wants a message: the instructions are all there is to say
        words = "\n\n".join(block["text"] for block in system) or _NO_WORDS
        system, alone = [], _turn("user", [_text(words)])
        return {"system": _text_or_blocks(_noted(system, notes)), "messages": [alone]}
    _repair_ends(turns, traits)
    return {
        "system": _text_or_blocks(_noted(system, notes)),
        "messages": [_turn(role, blocks) for role, blocks in turns],
    }


def _system_blocks(message: Message) -> Iterable[Json]:
    if message.role is not Role.SYSTEM:
        return
    for part in message.parts:
        if not isinstance(part, Text):
            raise CannotTranslate("Anthropic takes text only in system messages.")
        if part.text.strip():
            yield _marked(part)


def _noted(system: list[Json], notes: list[str]) -> list[Json]:
    return [*system, *map(_text, notes)]


def _text_or_blocks(blocks: list[Json]) -> Json:
    if len(blocks) == 1:
        return _plain(blocks[0]) or blocks
    return blocks or None


def _turns(messages: tuple[Message, ...]) -> list[tuple[str, list[Json]]]:
    """User and assistant in turn: neighbours of one role are one turn, empty ones are left out."""
    turns: list[tuple[str, list[Json]]] = []
    spoken = [message for message in messages if message.role is not Role.SYSTEM]
    for message in spoken:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = _worded([block for part in message.parts for block in _blocks(part)])
        if not blocks and message is spoken[-1] and role == "user":
            blocks = [_text(_NO_WORDS)]
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    for role, blocks in turns:
        if role == "user":  # the answers to the tools come first, or the API misses them
            blocks.sort(key=lambda block: block["type"] != "tool_result")
    return turns


def _worded(blocks: list[Json]) -> list[Json]:
    """Leave out empty text, and blank text too where a message has no other words.

    "messages: text content blocks must be non-empty", "… must contain non-whitespace text".
    """
    has_words = any(block["type"] == "text" and block["text"].strip() for block in blocks)
    return [
        block
        for block in blocks
        if block["type"] != "text" or (block["text"] if has_words else block["text"].strip())
    ]


def _repair_ends(turns: list[tuple[str, list[Json]]], traits: Traits) -> None:
    """The first turn is the user's; the last is, too, where the model takes no prefill."""
    if turns[0][0] == "assistant":
        turns.insert(0, ("user", [_text(_BEGINNING)]))
    role, blocks = turns[-1]
    if role != "assistant":
        return
    if not traits.prefill:
        turns.append(("user", [_text(_GO_ON)]))
        return
    # "final assistant content cannot end with trailing whitespace"
    while blocks[-1]["type"] == "text" and not blocks[-1]["text"].strip():
        blocks.pop()
    if blocks[-1]["type"] == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"].rstrip()}


def _turn(role: str, blocks: list[Json]) -> dict[str, Json]:
    only = _plain(blocks[0]) if len(blocks) == 1 else None
    return {"role": role, "content": blocks if only is None else only}


def _blocks(part: Part) -> list[Json]:
    match part:
        case Text():
            return [_marked(part)]
        case Image():
            return [_image(part)]
        case Reasoning():
            # Only a thought that has its seal may go back.
            return [_thought(part)] if is_sealed(part) else []
        case ToolCall():
            return [_tool_use(part)]
        case ToolResult():
            return [_tool_result(part)]
        case Other():
            if part.kind in OWN_BLOCKS:
                return [dict(part.raw)]
            raise CannotTranslate(
                f'Anthropic has no way to take a part of the kind "{part.shown_kind}".'
            )


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _marked(part: Text) -> Json:
    """A block, with its mark where a prefix ends that the vendor is to keep for a while.

    Nothing is kept without one: platform.claude.com/docs/en/build-with-claude/prompt-caching.
    """
    block = _text(part.text)
    return {**block, "cache_control": {"type": "ephemeral"}} if part.cache else block


def _plain(block: Json) -> str | None:
    """The text of a block that says nothing else, for where text may stand without a block."""
    is_plain = block["type"] == "text" and "cache_control" not in block
    return block["text"] if is_plain else None


def _image(image: Image) -> Json:
    if image.data is not None:
        media_type = image.media_type or "image/png"
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": image.data},
        }
    return {"type": "image", "source": {"type": "url", "url": image.url}}


def _thought(part: Reasoning) -> Json:
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _tool_use(call: ToolCall) -> Json:
    return {
        "type": "tool_use",
        "id": _tool_id(call.id),
        "name": call.name,
        "input": input_of(call.arguments),
    }


def input_of(arguments: str) -> dict[str, Json]:
    """Arguments as the object the API wants; text that is no object is kept as a member."""
    try:
        value = from_json(arguments.strip() or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {UNREADABLE_ARGUMENTS: arguments}


def _tool_result(result: ToolResult) -> Json:
    content = _worded([block for part in result.parts for block in _blocks(part)])
    block: dict[str, Json] = {"type": "tool_result", "tool_use_id": _tool_id(result.call_id)}
    if content:
        only = _plain(content[0]) if len(content) == 1 else None
        block["content"] = content if only is None else only
    if result.is_error:
        block["is_error"] = True
    return block


def _tool_id(identifier: str) -> str:
    """Other vendors put dots and colons into ids; Anthropic takes letters, digits, _ and -."""
    return _NOT_IN_AN_ID.sub("_", identifier) or "toolu_0"
