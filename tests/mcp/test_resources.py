"""Every resource by the official client, in both eras of the protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.mcp.world import MODES, PLANNER, READER, RECORDER, STRANGER, Mode, World

if TYPE_CHECKING:
    from mcp import Client, MCPError

URIS = [
    "helmdeck://context-budgets",
    "helmdeck://my-plans",
    "helmdeck://my-defaults",
    "helmdeck://routing-guide",
    "helmdeck://models",
]

both_modes = pytest.mark.parametrize("mode", MODES)


@both_modes
def test_the_client_lists_and_reads_every_resource(world: World, mode: Mode) -> None:
    async def look(client: Client) -> tuple[list[str], list[str]]:
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        for uri in listed:
            (block,) = (await client.read_resource(uri)).contents
            assert block.mime_type == "application/json"
        templates = (await client.list_resource_templates()).resource_templates
        return listed, [each.uri_template for each in templates]

    listed, templates = world.visit(look, mode)

    assert listed == URIS
    assert templates == ["helmdeck://conversation-health/{id}"]


def test_context_budgets_have_the_seeds_shape(world: World) -> None:
    found = world.read("helmdeck://context-budgets")

    assert set(found) == {"fetched_at", "fallback", "budgets", "policy"}
    assert found["fallback"]["model"] == ""
    assert found["fallback"]["tier"] == "C"
    assert found["fallback"]["max_catalog_bytes"] > 0
    tiers = {row["tier"] for row in found["budgets"]}
    assert tiers == {"A", "B", "C"}
    for row in found["budgets"]:
        assert row["prompt_variant"] in ("full_steps", "single_pick")
        assert row["tier"] != "A" or row["max_catalog_bytes"] == 0
        # What says "no" is left out.
        assert all(value or name == "max_catalog_bytes" for name, value in row.items())


def test_context_budgets_are_those_of_the_api(world: World) -> None:
    found = world.read("helmdeck://context-budgets")
    told = world.http.get("/api/v1/context-budgets").json()

    names = ("model", "input_tokens", "output_tokens", "tier", "prompt_variant")
    assert found["policy"] == told["policy"]
    assert [[row[name] for name in names] for row in found["budgets"]] == [
        [row[name] for name in names] for row in told["budgets"]
    ]


@both_modes
def test_my_plans_are_those_of_the_key(world: World, mode: Mode) -> None:
    intent = {"auto": "Scrape the page.", "legacy": "Translate a report."}[mode]
    asked = {"user_intent": intent, "model": "sim/planner", "prompt_variant": "full_steps"}
    before = world.read("helmdeck://my-plans", mode, key=PLANNER)
    told, is_error = world.call("plan", asked, mode, key=PLANNER)
    assert not is_error, told

    own = world.read("helmdeck://my-plans", mode, key=PLANNER)
    others = world.read("helmdeck://my-plans", mode, key=READER)
    strangers = world.read("helmdeck://my-plans", mode, key=STRANGER)

    assert own["scope"] == "caller=planner"
    assert len(own["groups"]) == len(before["groups"]) + 1
    assert own["groups"][0]["top_tools"] == ["doc.summarize", "web.scrape"]
    assert own["groups"][0]["models"] == ["sim/planner"]
    assert (others["scope"], others["groups"]) == ("caller=reader", [])
    assert (strangers["scope"], strangers["groups"]) == ("caller=stranger", [])
    assert "note" in others
    defaults = world.read("helmdeck://my-defaults", mode, key=PLANNER)
    assert defaults["scope"] == "caller=planner"
    assert {each["id"] for each in defaults["packs"]} == {"doc.summarize", "web.scrape"}


def test_the_routing_guide_is_the_current_catalog_with_its_policy(world: World) -> None:
    found = world.read("helmdeck://routing-guide")

    assert "helmdeck ADR 047" in found["policy"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", found["fetched_at"])
    scrape, summarize = found["packs"]
    assert scrape["metadata"]["accepts"] == ["url"]
    assert "metadata" not in summarize
    digest, bare = found["pipelines"]
    assert digest["metadata"]["supersedes"] == ["web.scrape", "doc.summarize"]
    assert "metadata" not in bare


def test_a_project_without_a_catalog_has_an_empty_guide(world: World) -> None:
    found = world.read("helmdeck://routing-guide", key=STRANGER)

    assert (found["packs"], found["pipelines"]) == ([], [])
    assert "no current catalog" in found["note"]


def test_the_models_are_those_that_the_gateway_serves(world: World) -> None:
    found = world.read("helmdeck://models")

    assert set(found) == {"models", "fetched_at"}
    assert {"id": "sim/planner", "provider": "sim"} in found["models"]


@both_modes
@pytest.mark.parametrize(
    "uri",
    [
        "helmdeck://no-such-thing",
        "helmdeck://conversation-health/",
        "helmdeck://conversation-health/nobody",
        "helmdeck://conversation-health/%00",
        "https://example.com/",
        "file:///etc/passwd",
        "",
    ],
)
def test_what_is_not_there_is_an_error_that_says_so(world: World, mode: Mode, uri: str) -> None:
    async def read(client: Client) -> MCPError:
        from mcp import MCPError

        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return caught.value

    error = world.visit(read, mode)

    assert error.code == -32602
    assert "no resource" in error.message or "No conversation" in error.message


@both_modes
def test_a_key_without_the_scope_reads_nothing(world: World, mode: Mode) -> None:
    async def read(client: Client) -> MCPError:
        from mcp import MCPError

        with pytest.raises(MCPError) as caught:
            await client.read_resource("helmdeck://models")
        return caught.value

    error = world.visit(read, mode, key=RECORDER)

    assert error.message == "The key recorder lacks the scope read."


def test_a_conversation_of_another_project_is_not_there(world: World) -> None:
    call = {"model": "openai/gpt-4o", "conversation": "mcp-own", "usage": {"prompt_tokens": 5}}
    world.call("record_call", call)

    told, is_error = world.call("conversation_health", {"conversation": "mcp-own"}, key=STRANGER)

    assert is_error
    assert told["error"] == "not_found"
