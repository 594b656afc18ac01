"""Completed steps: reading them from a context, and not taking them again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.planning.arguments import Given
from helmdash.core.planning.completed_steps import MOST_COMPLETED, completed_steps, refuse_loop
from helmdash.core.planning.plan_calls import PlannedCall, resolve
from helmdash.core.planning.plans import PIPELINE_RUN, CompletedStep, UnusablePlan
from helmdash.core.planning.tool_names import ToolNames
from tests.core.catalogs import make_pack, make_pipeline, odd

NAMES = ToolNames(
    parse_catalog(
        {
            "packs": [make_pack("fs.read"), make_pack("web.scrape")],
            "pipelines": [make_pipeline("builtin.blog")],
        }
    )
)
READ, READ_A = CompletedStep(tool="fs.read"), CompletedStep(tool="fs.read", args={"path": "a"})


@pytest.mark.parametrize(
    ("context", "completed"),
    [
        (None, ()),
        ({}, ()),
        ({"steps_taken": ["fs.read"]}, (READ,)),
        ({"taken": [{"tool": "fs.read", "args": {"path": "a"}}]}, (READ_A,)),
        ({"completed_steps": [{"name": "fs.read", "arguments": '{"path": "a"}'}]}, (READ_A,)),
        ({"done": [{"tool": "fs.read", "status": "ok", "result": "text"}]}, (READ,)),
        ({"progress": {"done": ["fs.read", {"tool": "fs.read"}]}}, (READ, READ)),
        (
            {"tool_calls": [{"function": {"name": "fs.read", "arguments": "{}"}}]},
            (CompletedStep(tool="fs.read", args={}),),
        ),
        # The last step alone: with its args, and by name, which must not be picked again.
        ({"previous_step": {"tool": "fs.read", "args": {"path": "a"}}}, (READ_A,)),
        ({"last_tool": "fs.read"}, (READ, READ)),
        ({"state": {"last_step": {"tool": "fs.read"}}}, (READ, READ)),
        ({"last_step": {"tool": "fs.read", "status": "failed"}}, ()),
        ({"last_step": "I read the file"}, ()),
        # A failed step may be tried again.
        ({"taken": [{"tool": "fs.read", "status": "failed"}]}, ()),
        ({"taken": [{"tool": "fs.read", "ok": False}, {"tool": "x", "error": "no key"}]}, ()),
        # Prose, messages and flags are no steps.
        ({"done": ["I read the file"]}, ()),
        ({"history": [{"role": "user", "name": "Ada", "content": "hi"}, "fs.read"]}, ()),
        ({"done": True, "taken": {"a": 1}, "progress": 3, "steps": ["fs.read"]}, ()),
        ({"taken": [None, 3, {}, {"tool": 7}]}, ()),
    ],
)
def test_a_context_lists_steps_in_the_usual_words(
    context: dict[str, Any] | None, completed: tuple[CompletedStep, ...]
) -> None:
    assert completed_steps(context) == completed


def test_of_many_steps_the_newest_are_heard() -> None:
    found = completed_steps({"taken": [f"tool{n}" for n in range(1_000)]})

    assert (len(found), found[-1].tool) == (200, "tool999")


@settings(max_examples=60, deadline=None)
@given(odd)
def test_any_context_is_read(value: object) -> None:
    for context in (
        {"taken": value},
        {"done": [value]},
        {"history": [{"tool": "a", "args": value}]},
    ):
        assert all(step.tool for step in completed_steps(context))


def call_of(tool: str, **args: object) -> PlannedCall:
    found = resolve(tool, Given(args), NAMES)
    assert isinstance(found, PlannedCall)
    return found


def rule_of(call: PlannedCall, *completed: CompletedStep) -> str | None:
    try:
        refuse_loop(call, completed, NAMES)
    except UnusablePlan as refused:
        return refused.rule
    return None


REPEATS = "plan.repeats_itself"
RUN = CompletedStep(tool=PIPELINE_RUN, args={"id": "builtin.blog", "inputs": {"brief": "b"}})


@pytest.mark.parametrize(
    ("call", "completed", "rule"),
    [
        (call_of("fs.read", path="a"), [], None),
        (call_of("fs.read", path="a"), [READ_A], REPEATS),
        (call_of("fs.read", path="b"), [READ_A], None),  # a second file
        (
            call_of("fs.read", path="a"),
            [CompletedStep(tool="web.scrape", args={"path": "a"})],
            None,
        ),
        (call_of("fs.read"), [CompletedStep(tool="fs.read", args={})], REPEATS),
        # In other spellings, other number formats.
        (
            call_of("fs.read", n=1),
            [CompletedStep(tool="helmdeck__fs-read", args={"n": 1.0})],
            REPEATS,
        ),
        (call_of("builtin.blog", brief="b"), [RUN], REPEATS),
        (call_of("builtin.blog", brief="c"), [RUN], None),
        # Where arguments are not known, twice is fine and three times is not.
        (call_of("fs.read", path="a"), [READ], None),
        (call_of("fs.read", path="a"), [READ, READ], REPEATS),
        (call_of("fs.read"), [READ_A], None),
        (call_of("fs.read"), [READ_A, CompletedStep(tool="fs.read", args={"path": "b"})], REPEATS),
        # Steps the catalog does not know are told apart from all others.
        (call_of("fs.read"), [CompletedStep(tool="unknown"), CompletedStep(tool="")], None),
        (call_of("fs.read"), [CompletedStep(tool="helmdeck.plan")] * 3, None),
    ],
)
def test_a_step_is_not_taken_again(
    call: PlannedCall, completed: list[CompletedStep], rule: str | None
) -> None:
    assert rule_of(call, *completed) == rule


def test_a_chain_comes_to_an_end() -> None:
    others = [CompletedStep(tool="web.scrape", args={"n": n}) for n in range(MOST_COMPLETED)]

    assert rule_of(call_of("fs.read"), *others[1:]) is None
    assert rule_of(call_of("fs.read"), *others) == "plan.too_many_steps"
