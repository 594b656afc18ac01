"""The answers to plans and routes: what a caller reads about arguments and gaps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import PlanStep
from tests.factories import make_project
from tests.planning.telling import Replies, tell

LIST = "is a list; it must be an object"
DEEP = "nests deeper than 32 levels"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_project()


def step_of(project: ProjectInfo, **step: object) -> Any:
    body: Any = tell(project, Replies([json.dumps({"steps": [step]})])).body
    return body["steps"][0]


def route_to(project: ProjectInfo, **members: object) -> Any:
    body: Any = tell(project, Replies([json.dumps({"recommendation": members})]), kind="route").body
    return body["recommendation"]


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_step_tells_which_arguments_are_still_to_be_filled_in(project: ProjectInfo) -> None:
    assert step_of(project, tool="web.scrape", args={"limit": 3})["missing_args"] == ["url"]
    assert "missing_args" not in step_of(project, tool="web.scrape", args={"url": "{{url}}"})
    assert "arg_errors" not in step_of(project, tool="web.scrape")


def test_a_recommendation_tells_it_too(project: ProjectInfo) -> None:
    assert route_to(project, kind="pack", id="web.scrape")["missing_args"] == ["url"]
    got = route_to(project, kind="pack", id="web.scrape", suggested_inputs={"url": "u"})
    assert "missing_args" not in got


@pytest.mark.parametrize(
    ("step", "field", "message"),
    [
        ({"tool": "web.scrape", "args": [1]}, "args", LIST),
        ({"tool": "web.scrape", "arguments": "a page"}, "args", "is a text; it must be an object"),
        ({"tool": "web.scrape", "args": deep(40)}, "args", DEEP),
        ({"tool": "builtin.scrape-blog", "args": []}, "args.inputs", LIST),
        (
            {
                "tool": "helmdeck__pipeline-run",
                "args": {"id": "builtin.scrape-blog", "inputs": [1]},
            },
            "args.inputs",
            LIST,
        ),
        ({"tool": "no.such", "args": [1]}, "args", LIST),  # a gap
        ({"tool": "no.such", "args": deep(40)}, "args", DEEP),
    ],
)
def test_arguments_that_are_no_object_are_told_once_by_where_they_are(
    project: ProjectInfo, step: dict[str, object], field: str, message: str
) -> None:
    assert step_of(project, **step)["arg_errors"] == [{"field": field, "message": message}]


@pytest.mark.parametrize(
    ("inputs", "field"), [("a page", "suggested_inputs"), ({"url": 7}, "suggested_inputs.url")]
)
def test_faults_of_suggested_inputs_are_told_once_by_where_they_are(
    project: ProjectInfo, inputs: object, field: str
) -> None:
    got = route_to(project, kind="pack", id="web.scrape", suggested_inputs=inputs)

    assert [fault["field"] for fault in got["arg_errors"]] == [field]


def test_a_part_without_entry_is_told_in_the_words_of_its_rationale(project: ProjectInfo) -> None:
    why = "Publish a post in Klingon. No pack does."
    reply = json.dumps({"steps": [{"tool": "unknown", "args": {}, "rationale": why}]})

    body: Any = tell(project, Replies([reply])).body

    gap = body["steps"][0]["gap"]
    assert gap["reason"] == "the model found no entry for this part"
    assert gap["asked"] == "Publish a post in Klingon."
    assert "blog.publish" in gap["suggestions"]
    assert body["gap_warning"]["missing_capability"] == "Publish a post in Klingon."


def test_what_a_part_without_entry_wanted_is_not_kept_where_texts_are_not(
    project: ProjectInfo,
) -> None:
    step = step_of(replace(project, payload="off"), tool="unknown", rationale="Call Ada now.")

    assert step["gap"]["asked"] == "Call Ada now."
    assert PlanStep.objects.get().asked == ""


def test_nothing_is_suggested_for_what_nothing_is_like(project: ProjectInfo) -> None:
    step = step_of(project, tool="youtube.transcript", rationale="Captions.")

    assert step["gap"]["suggestions"] == []


def test_a_gap_alone_is_a_route_to_nothing(project: ProjectInfo) -> None:
    reply = json.dumps({"gap_warning": {"missing_capability": "captions"}})

    body: Any = tell(project, Replies([reply]), kind="route").body

    assert body["recommendation"]["kind"] == "none"
    assert body["gap_warning"]["missing_capability"] == "captions"
    assert len(body["attempts"]) == 1
