"""How many things one request may hold: more than these is nobody's conversation, and much work.

A message of a few characters costs some 15 us in all, so 50,000 are below a second of the process
that takes large requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from helmdash.gateway.refusals import bad_request
from helmdash.providers.shared.reported import list_in

# A window of a million tokens, filled with turns of twenty tokens each.
MOST_MESSAGES = 50_000
# Texts, images, calls and results inside of messages; two for each of the most messages.
MOST_PARTS = 100_000
# Providers take 128 to 512; a client that brings a whole catalog brings a few thousand.
MOST_TOOLS = 5_000
# Embeddings of one request; providers take 100 to 2,048.
MOST_INPUTS = 50_000
# What is smaller cannot hold so many: an empty object and its comma are three bytes.
_LEAST_BYTES = 3 * MOST_TOOLS

_MESSAGES = ("messages", "contents")
_PARTS = ("content", "parts", "tool_calls", "output")
_SHORTEN = "Leave out or sum up older ones."
_DECLARED = ("tools", "functionDeclarations", "function_declarations")


def check_sizes(parsed: Mapping[str, Any], body_bytes: int) -> None:
    """Raises Refusal (400) that names the member which holds too many, and the limit."""
    if body_bytes < _LEAST_BYTES:
        return
    for member in _MESSAGES:
        messages = list_in(parsed, member)
        _check(member, len(messages), MOST_MESSAGES, _SHORTEN)
        parts = sum(_parts(message) for message in messages)
        what = f"{member}[]: the parts of all messages together"
        _check(what, parts, MOST_PARTS, _SHORTEN)
    parts = sum(_parts(item) for item in list_in(parsed, "input"))
    _check("input[]: the parts of all items together", parts, MOST_PARTS, _SHORTEN)
    _check("tools", _tools(parsed.get("tools")), MOST_TOOLS, "Send those that fit the task.")
    _check("input", len(list_in(parsed, "input")), MOST_INPUTS, "Send them in several requests.")


def _check(what: str, count: int, most: int, advice: str) -> None:
    if count > most:
        raise bad_request(f"{what}: at most {most:,} in one request, not {count:,}. {advice}")


def _parts(message: object) -> int:
    """The parts of a message, those of its tool results included."""
    if not isinstance(message, Mapping):
        return 0
    inside = [part for name in _PARTS for part in list_in(message, name)]
    return len(inside) + sum(len(list_in(p, "content")) for p in _objects(inside))


def _tools(tools: object) -> int:
    """The tools, those of Gemini's groups and OpenAI's namespaces one by one."""
    listed = tools if isinstance(tools, list) else []
    grouped = (len(list_in(tool, name)) for tool in _objects(listed) for name in _DECLARED)
    return len(listed) + sum(grouped)


def _objects(values: Iterable[object]) -> Iterable[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping))
