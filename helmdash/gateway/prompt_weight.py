"""What fills a request's prompt, weighed in one pass over its messages.

Every chat is weighed before it is sent: an estimate goes by it. So this is plain loops, and a text
in ASCII, as most are, tells its bytes without being encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from helmdash.core.calls.composition import Composition, largest_results
from helmdash.core.calls.tool_schemas import OfferedTools, declared_tools, offered_tools
from helmdash.core.text.tokens import utf8_bytes
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

# Of a reference in messages: a message's content, a result's, and what a search found, each a list.
# A body may be nested a thousand deep.
_DEEPEST_REFERENCE: Final = 8


def weigh(request: ChatRequest) -> tuple[int, Composition]:
    """How many images a request carries, and what fills it: all but the schemas of its tools."""
    scales = _Scales()
    system = user = assistant = results = 0
    for message in request.messages:
        parts, role = message.parts, message.role
        # Nearly all messages say one text in ASCII.
        if len(parts) == 1 and type(parts[0]) is Text and parts[0].text.isascii():
            size = len(parts[0].text)
        else:
            size = scales.put(parts)
        if role is Role.USER:
            user += size
        elif role is Role.ASSISTANT:
            assistant += size
        elif role is Role.TOOL:
            results += size
        else:
            system += size
    by_tool = scales.results
    composition = Composition(
        system=system,
        user=user,
        assistant=assistant,
        tool_results=results + sum(by_tool.values()),
        images=scales.image_bytes,
        other=scales.other,
        results_by_tool=largest_results(by_tool) if by_tool else _NO_RESULTS,
    )
    return scales.images, composition


def weigh_tools(
    parsed: Mapping[str, Any], *, defers: bool = False
) -> tuple[int, OfferedTools | None]:
    """The bytes of the schemas of a request's tools, as JSON, and which of them take how many.

    A mark of where a cache is to end (Anthropic's) moves from one to another, and is no schema.
    defers: tools that the provider defers are left out, for it keeps them out of the prompt.
    """
    declared = [
        (name, len(orjson.dumps(_unmarked(each))))
        for name, each in declared_tools(parsed)
        if not (defers and _is_deferred(each))
    ]
    if not declared:
        tools = None if defers else parsed.get("tools")
        return (len(orjson.dumps(tools)) if tools else 0), None
    # With the brackets and commas of their list; Gemini has some more of them.
    return sum(size for _, size in declared) + len(declared) + 1, offered_tools(declared)


def deferred_bytes(parsed: Mapping[str, Any]) -> int:
    """The bytes of the tools that the provider keeps out of the prompt, as JSON: those that it
    defers and that nothing in the conversation has loaded since.

    Anthropic's tools with `defer_loading`: platform.claude.com/docs, tool use with prompt caching.
    One that was found stands where it was found, by a `tool_reference`.
    """
    deferred = {
        name: len(orjson.dumps(_unmarked(tool))) + 1
        for name, tool in declared_tools(parsed)
        if _is_deferred(tool)
    }
    if deferred:
        for name in _tool_references(parsed.get("messages")):
            deferred.pop(name, None)
    return sum(deferred.values())


def _is_deferred(tool: object) -> bool:
    return isinstance(tool, dict) and tool.get("defer_loading") is True


def _tool_references(value: object, deepest: int = _DEEPEST_REFERENCE) -> Iterator[str]:
    """The names of the tools that were loaded, in some messages."""
    if deepest < 0:
        return
    if isinstance(value, list):
        for each in value:
            yield from _tool_references(each, deepest - 1)
    elif isinstance(value, dict):
        name = value.get("tool_name")
        if value.get("type") == "tool_reference" and isinstance(name, str):
            yield name
        for member in ("content", "tool_references"):
            yield from _tool_references(value.get(member), deepest - 1)


def _unmarked(tool: object) -> object:
    if not isinstance(tool, dict) or _CACHE_MARK not in tool:
        return tool
    return {name: value for name, value in tool.items() if name != _CACHE_MARK}


def with_user_text(composition: Composition, message: Message) -> Composition:
    """What fills a request with one more message of the user's, of texts alone."""
    return replace(composition, user=(composition.user or 0) + _Scales().put(message.parts))


_CACHE_MARK: Final = "cache_control"
# A plain one, which JSON is written of without asking what it is.
_NO_RESULTS: Mapping[str, int] = {}


class _Scales:
    """What is not of the one who says it: results of tools by name, images and other parts."""

    __slots__ = ("_names", "image_bytes", "images", "other", "results")

    def __init__(self) -> None:
        self.images = self.image_bytes = self.other = 0
        self.results: dict[str, int] = {}
        self._names: dict[str, str] = {}  # of tools, by the id of their call

    def put(self, parts: Iterable[Part]) -> int:
        """The bytes of the texts of a message; the rest is added to what it is of."""
        size = 0
        for part in parts:
            # Nearly all parts are texts.
            if type(part) is Text:
                text = part.text
                size += len(text) if text.isascii() else utf8_bytes(text)
            else:
                size += self._put_rare(part)
        return size

    def _put_rare(self, part: Part) -> int:
        match part:
            case ToolResult():
                name = part.name or self._names.get(part.call_id, "")
                self.results[name] = self.results.get(name, 0) + self.put(part.parts)
            case ToolCall():
                self._names[part.id] = part.name
                return len(part.name) + utf8_bytes(part.arguments)
            case Text() | Reasoning():
                return utf8_bytes(part.text)
            case Image():
                self.images += 1
                self.image_bytes += len(part.data or "")
            case Other():
                self.other += _texts_in(part.raw)
        return 0


def _texts_in(value: Json) -> int:
    """The bytes of all texts in a part that only its own format knows."""
    if isinstance(value, str):
        return utf8_bytes(value)
    if isinstance(value, dict):
        return sum(map(_texts_in, value.values()))
    return sum(map(_texts_in, value)) if isinstance(value, list) else 0
