"""The tools and resources as they are written down: in docs/mcp.md, and in the JSON API."""

from __future__ import annotations

import re

import pytest

from helmdash.api.schemas import fitting as api_fitting
from helmdash.api.schemas import planning as api_planning
from helmdash.api.schemas import reports as api_reports
from helmdash.mcp.resources import HEALTH_TEMPLATE, RESOURCES
from helmdash.mcp.tools import TOOLS, fitting, planning, recording
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


@pytest.mark.parametrize(
    ("own", "api"),
    [
        (recording.CallIn, api_reports.CallIn),
        (recording.TrimIn, api_reports.TrimIn),
        (recording.SentIn, api_reports.SentIn),
        (fitting.FitIn, api_fitting.FitIn),
        (planning.AskIn, api_planning.AskIn),
    ],
)
def test_tools_take_the_bodies_of_the_api(own: type, api: type) -> None:
    assert set(own.__annotations__) == set(api.__annotations__)
