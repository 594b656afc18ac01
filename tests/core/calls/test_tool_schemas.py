"""Which tools a request offers, in each format that declares them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helmdash.core.calls.tool_schemas import (
    MOST_TOOLS,
    TOOL_CHARS,
    OfferedTools,
    declared_tools,
    offered_tools,
)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}

# request, the names of its tools in their order
REQUESTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"tools": None}, []),
    ({"tools": []}, []),
    # What no format has.
    ({"tools": "all"}, []),
    ({"tools": [None, 3, "read", []]}, []),
    ({"tools": [{}]}, [""]),
    # OpenAI chat, Ollama
    ({"tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]},
     ["read"]),
    ({"tools": [{"type": "custom", "custom": {"name": "patch"}}]}, ["patch"]),
    ({"functions": [{"name": "old", "parameters": SCHEMA}]}, ["old"]),
    # Responses
    ({"tools": [{"type": "function", "name": "shell", "parameters": SCHEMA}]}, ["shell"]),
    ({"tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "docs"}]},
     ["web_search", "docs"]),
    # Anthropic
    ({"tools": [{"name": "Bash", "input_schema": SCHEMA}]}, ["Bash"]),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, ["web_search"]),
    ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "jira"}]}, ["jira"]),
    # Gemini
    ({"tools": [{"functionDeclarations": [{"name": "a", "parameters": SCHEMA}, {"name": "b"}]}]},
     ["a", "b"]),
    ({"tools": [{"function_declarations": [{"name": "a"}], "googleSearch": {}}]},
     ["a", "googleSearch"]),
    ({"tools": [{"codeExecution": {}}]}, ["codeExecution"]),
    ({"tools": [{"functionDeclarations": None}]}, ["functionDeclarations"]),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "names"), REQUESTS)
def test_tools_are_named_in_every_format(request_: dict[str, Any], names: list[str]) -> None:
    assert [name for name, _ in declared_tools(request_)] == names


@pytest.mark.parametrize(("request_", "names"), [each for each in REQUESTS if each[1]])
def test_what_declares_a_tool_is_no_more_than_was_sent(
    request_: dict[str, Any], names: list[str]
) -> None:
    told = sum(len(json.dumps(each)) for _, each in declared_tools(request_))

    assert 0 < told <= len(json.dumps(request_))


def test_the_largest_come_first_and_tools_of_one_name_are_one() -> None:
    told = offered_tools([("b", 9), ("a", 5), ("a", 6)])

    assert told == OfferedTools(count=2, by_name={"a": 11, "b": 9})
    assert list(told.by_name) == ["a", "b"]


def test_of_many_the_largest_are_kept_and_all_are_counted() -> None:
    told = offered_tools([*((f"tool-{number}", number) for number in range(156)), ("x" * 999, 999)])

    assert offered_tools([]) is None
    assert told is not None
    assert (told.count, len(told.by_name)) == (157, MOST_TOOLS)
    assert list(told.by_name.values()) == [999, *range(155, 156 - MOST_TOOLS, -1)]
    assert max(map(len, told.by_name)) == TOOL_CHARS
