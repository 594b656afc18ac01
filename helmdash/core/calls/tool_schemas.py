"""Which tools a request offers, and how much of its prompt the schema of each takes, in bytes.

Agents send the schemas of all their tools with every call: a hundred of them fill a window before
the first question. Where each format declares them: OpenAI's chat (also Ollama's) and Responses
`tools`, each of them a function, or a tool of the provider's own; the former `functions`;
Anthropic's `tools` with their name beside `input_schema`; Gemini's `tools`, each of which declares
many functions, or is one of Gemini's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Annotated, Any, Final

from helmdash.answers import Doc, answer
from helmdash.core.values import quick_value

# Of hundreds, those that are worth a thought; each call keeps them.
MOST_TOOLS: Final = 40
# As long as the longest names that providers take.
TOOL_CHARS: Final = 128
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
# Where a name stands that does not stand beside the schema.
_WITHIN: Final = ("function", "custom")
# What names a tool that has no name: a server of tools, or a kind of the provider's own.
_NAMED_BY: Final = ("name", "server_label", "mcp_server_name", "type")


@answer("OfferedTools")
@quick_value(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """The tools that a request offered."""

    count: Annotated[int, Doc("How many, by their names.")]
    by_name: Annotated[
        Mapping[str, int], Doc(f"Bytes of the schemas of the largest {MOST_TOOLS}, largest first.")
    ]


def declared_tools(request: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Each tool that a request offers, by name ("" where it has none), with what declares it.

    Of JSON as it was read. Every call with tools is asked: the usual ones are told at once.
    """
    for member in ("tools", "functions"):
        listed = request.get(member)
        for tool in listed if isinstance(listed, list) else ():
            if not isinstance(tool, dict):
                continue
            name = _usual_name(tool)
            if name:
                yield name, tool
            else:
                yield from _declared(tool)


def offered_tools(sizes: Iterable[tuple[str, int]]) -> OfferedTools | None:
    """The largest of some tools with their bytes; those of one name are one. None: of no tool."""
    by_name: dict[str, int] = {}
    for name, size in sizes:
        short = name[:TOOL_CHARS]
        by_name[short] = by_name.get(short, 0) + size
    if not by_name:
        return None
    largest = sorted(by_name.items(), key=itemgetter(1), reverse=True)[:MOST_TOOLS]
    return OfferedTools(count=len(by_name), by_name=dict(largest))


def offered_of(stored: Any) -> OfferedTools | None:
    """Those that a call was stored with; None: nothing was told."""
    return OfferedTools(count=stored["count"], by_name=dict(stored["by_name"])) if stored else None


def _declared(tool: dict[str, object]) -> Iterator[tuple[str, object]]:
    grouped = next((tool[name] for name in _DECLARATIONS if name in tool), None)
    if not isinstance(grouped, list):
        yield _name(tool), tool
        return
    for each in grouped:
        if isinstance(each, dict):
            yield _usual_name(each) or _name(each), each
    for name, own in tool.items():
        if name not in _DECLARATIONS:
            yield name, {name: own}


def _usual_name(tool: dict[str, object]) -> str:
    within = tool.get("function", tool)
    name = within.get("name") if isinstance(within, dict) else None
    return name if isinstance(name, str) else ""


def _name(tool: dict[str, object]) -> str:
    for member in _WITHIN:
        inner = tool.get(member)
        if isinstance(inner, dict):
            return _name(inner)
    told = (tool.get(member) for member in _NAMED_BY)
    named = next((each for each in told if isinstance(each, str) and each), None)
    # One of Gemini's own is an object under its name.
    return named or (next(iter(tool)) if len(tool) == 1 else "")
