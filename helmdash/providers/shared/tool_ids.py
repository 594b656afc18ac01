"""Ids of tool calls, where a format has none of its own (Gemini, Ollama).

OpenAI and Anthropic tie a tool's answer to its call by an id; Gemini and Ollama may tie them by
name and order alone. The ids made here depend on nothing but what came before in the conversation,
so that the id in a reply is the id its history is read with one request later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from helmdash.providers.shared.bodies import read_json
from helmdash.providers.wire import Json, Message, Text, ToolCall, ToolResult

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 40
_DERIVED = re.compile(r"call_(\d{1,9})_.*", re.DOTALL)
# Where arguments that are no JSON object are put, in formats that want an object.
UNREADABLE_ARGUMENTS = "_arguments"
# orjson writes 254 levels; what stands around the value takes some of them.
_DEEPEST = 200


def derived_id(number: int, name: str) -> str:
    """The id of the conversation's tool call `number`, counted from 0.

    It keeps to what every provider takes: OpenAI at most 40 characters, Anthropic letters, digits,
    `_` and `-`.
    """
    return f"call_{number}_{_NOT_IN_AN_ID.sub('_', name)}"[:_LONGEST_ID]


def is_derived(call_id: str) -> bool:
    """Whether `derived_id` made this id: the provider never gave it."""
    return _DERIVED.fullmatch(call_id) is not None


def next_number(messages: Iterable[Message]) -> int:
    """The number of a conversation's next tool call: above the count, and above every id.

    A client that cut its history keeps the ids of the calls that are left.
    """
    ids = [part.id for one in messages for part in one.parts if isinstance(part, ToolCall)]
    matches = filter(None, map(_DERIVED.fullmatch, ids))
    return max(len(ids), *(int(match[1]) + 1 for match in matches), 0)


def names_of_calls(messages: Iterable[Message]) -> dict[str, str]:
    """The name of each tool call by its id; of two with one id, the later one."""
    return {
        part.id: part.name
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }


def arguments_object(arguments: str) -> dict[str, Json]:
    """Arguments as the object that some formats want; what is none stands under one member."""
    if not arguments.strip():
        return {}
    value = object_of(arguments)
    return {UNREADABLE_ARGUMENTS: arguments} if value is None else value


def object_of(text: str) -> dict[str, Json] | None:
    """The JSON object that a text is; None for any other text, and for one we cannot write."""
    value = read_json(text.encode())
    return value if isinstance(value, dict) and _can_be_written(value) else None


def arguments_text(value: Json) -> str:
    """Arguments that came as a value, as JSON text; "" where there were none. Never raises."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if _can_be_written(value) else ""


def _can_be_written(value: Json) -> bool:
    """Whether it nests no deeper than our JSON writer goes (it reads four times as deep)."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return True
    return False


@dataclass(slots=True)
class CallIds:
    """Hands out ids while a history is read in order, and finds the call a result answers."""

    count: int = 0
    _open: list[tuple[str, str]] = field(default_factory=list)  # (id, name), unanswered

    def call(self, name: str, given: str | None) -> str:
        """The id of the next tool call: the given one, or where that is None or "" one made of its
        place."""
        call_id = given or derived_id(self.count, name)
        self.count += 1
        self._open.append((call_id, name))
        return call_id

    def result(self, name: str | None, given: str | None) -> tuple[str, str | None]:
        """The id and the name of the call that a result answers; name None: neither says it.

        By id where it has one; else the oldest unanswered call of its name; else, for a result
        without a name, the oldest unanswered call.
        """
        for index, (call_id, called) in enumerate(self._open):
            fits = call_id == given if given else name in (None, called)
            if fits:
                del self._open[index]
                return call_id, name or called
        return given or derived_id(self.count, name or "unknown"), name


def result_text(result: ToolResult) -> str:
    """The text of a tool's answer, joined."""
    return "".join(part.text for part in result.parts if isinstance(part, Text))
