"""The tools and resources as they are written down in docs/mcp.md."""

from __future__ import annotations

import re

from helmdash.mcp.resources import HEALTH_TEMPLATE, RESOURCES
from helmdash.mcp.tools import TOOLS
from tests.support.environment import ROOT

PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")


def test_the_page_names_every_tool_with_its_scope() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE, re.MULTILINE)

    assert told == [(tool.name, tool.scope) for tool in TOOLS]


def test_the_page_names_every_resource() -> None:
    told = re.findall(r"^\| `(helmdeck://[^`]+)` \|", PAGE, re.MULTILINE)

    assert told == [*(each.uri for each in RESOURCES), HEALTH_TEMPLATE.uri]


def test_a_tool_lists_only_arguments_that_it_takes_and_all_that_it_requires() -> None:
    for tool in TOOLS:
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])
        assert tool.schema["type"] == "object"
