"""Tools that a provider defers: they are no part of the prompt until the model has found them."""

from __future__ import annotations

from typing import Any

import pytest

from helmdash.gateway.prompt_weight import deferred_bytes, weigh_tools
from tests.gateway.world import World, model_of

SEARCH: dict[str, Any] = {"name": "find_tools", "input_schema": {"type": "object"}}
# More than the window of the simulated models, by any estimator.
LONG = "Tells the weather of a city. " * 20_000


def deferred(name: str, description: str = "Tells.") -> dict[str, Any]:
    return {**SEARCH, "name": name, "description": description, "defer_loading": True}


def found(*names: str) -> list[dict[str, Any]]:
    """A search for tools, and the references that it gave, as Claude Code 2.1.332 sends them."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "find_tools", "input": {}}
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": references}
    return [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


@pytest.mark.parametrize(
    ("tools", "messages", "counted"),
    [
        ([SEARCH], [], []),
        ([SEARCH, deferred("one"), deferred("two")], [], ["one", "two"]),
        ([SEARCH, deferred("one"), deferred("two")], found("two"), ["one"]),
        # By the provider's own search.
        (
            [deferred("one"), deferred("two")],
            [
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "tool_search_tool_result",
                            "tool_use_id": "srvtoolu_1",
                            "content": {
                                "type": "tool_search_tool_search_result",
                                "tool_references": [{"type": "tool_reference", "tool_name": "one"}],
                            },
                        }
                    ],
                }
            ],
            ["two"],
        ),
        # Not deferred, and no reference.
        ([{**SEARCH, "defer_loading": False}, deferred("one")], "tool_reference", ["one"]),
        ([deferred("one")], [{"role": "user", "content": [{"tool_name": "one"}, 7]}], ["one"]),
    ],
)
def test_what_is_deferred_and_not_found_is_counted(
    tools: list[dict[str, Any]], messages: object, counted: list[str]
) -> None:
    left = [tool for tool in tools if tool["name"] not in counted]
    request = {"tools": tools, "messages": messages}

    whole, _ = weigh_tools(request)
    rest, _ = weigh_tools({"tools": left})

    assert deferred_bytes(request) == whole - (rest or 1)


def test_a_body_that_is_nested_deep_is_looked_through_as_far_as_references_lie() -> None:
    nested: object = found("one")
    for _ in range(5_000):
        nested = [nested]

    assert deferred_bytes({"tools": [deferred("one")], "messages": nested}) > 0


def test_offered_tools_are_those_of_the_prompt() -> None:
    size, offered = weigh_tools({"tools": [SEARCH, deferred("one")]}, defers=True)

    assert (size, offered) == weigh_tools({"tools": [SEARCH]})
    assert weigh_tools({"tools": [deferred("one")]}, defers=True) == (0, None)


@pytest.mark.parametrize(
    ("provider", "status", "offered"),
    [("anthropic", 200, {"find_tools"}), ("openai", 400, {"find_tools", "weather"})],
)
def test_deferred_tools_count_where_another_format_sends_them(
    world: World, provider: str, status: int, offered: set[str]
) -> None:
    """A budget that is enforced refuses a prompt that is too long, and not a catalog beside it."""
    body = {
        "model": model_of(provider),
        "max_tokens": 100,
        "tools": [SEARCH, deferred("weather", LONG)],
        "messages": [{"role": "user", "content": "Hi"}],
    }

    answer = world.post("/v1/messages", body, anthropic_version="2023-06-01",
                        x_helmdash_budget="enforce")  # fmt: skip

    assert answer.status_code == status, answer.text
    call = world.call_of(answer)
    assert set(call["offered"]["by_name"]) == offered
    assert (call["sent"]["bytes"] < 1_000) is (status == 200)
