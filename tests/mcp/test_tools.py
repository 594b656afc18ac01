"""Every tool by the official client, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.mcp.world import INTENT, MODES, PLANNER, RECORDER, URL, Mode, World, let_go, rpc

if TYPE_CHECKING:
    from mcp import Client

TOOLS = [
    "plan",
    "route",
    "fit",
    "record_call",
    "conversation_health",
    "add_reminder",
    "update_reminder",
    "delete_reminder",
    "clear_mind",
]
# Every agent pays for the whole list in its context: under 8 KB, with room to spare.
ROOM_BYTES = 7000

both_modes = pytest.mark.parametrize("mode", MODES)


def _call(conversation: str, **over: Any) -> dict[str, Any]:
    return {
        "conversation": conversation,
        "model": "openai/gpt-4o",
        "usage": {"prompt_tokens": 96_000, "completion_tokens": 350},
        **over,
    }


@both_modes
def test_the_client_lists_the_tools(world: World, mode: Mode) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert world.visit(names, mode) == TOOLS


def test_the_list_of_tools_is_small_on_the_wire(world: World) -> None:
    response = world.post(rpc("tools/list"))

    assert response.headers["content-type"] == "application/json"
    assert len(response.json()["result"]["tools"]) == len(TOOLS)
    assert len(response.content) < ROOM_BYTES


@both_modes
def test_a_plan_names_entries_of_the_current_catalog(world: World, mode: Mode) -> None:
    asked = {"user_intent": INTENT, "model": "sim/planner", "prompt_variant": "full_steps"}

    told, is_error = world.call("plan", asked, mode)

    assert not is_error
    assert [step["tool"] for step in told["steps"]] == ["web.scrape", "doc.summarize"]
    assert told["steps"][0]["args"] == {"url": URL}
    assert told["plan_id"]


@both_modes
def test_a_route_recommends_an_entry(world: World, mode: Mode) -> None:
    told, is_error = world.call("route", {"user_intent": INTENT, "model": "sim/planner"}, mode)

    assert not is_error
    assert told["recommendation"]["id"] == "digest"


@both_modes
def test_a_fit_gives_the_catalog_and_its_receipt(world: World, mode: Mode) -> None:
    told, is_error = world.call("fit", {"model": "openai/gpt-4o", "intent": INTENT}, mode)

    assert not is_error
    assert [pack["name"] for pack in told["catalog"]["packs"]] == ["web.scrape", "doc.summarize"]
    assert told["compaction"]["fits"] is True
    assert told["budget"]["tier"] == "A"


@both_modes
def test_a_recorded_call_tells_the_health_of_its_conversation(world: World, mode: Mode) -> None:
    name = f"mcp-{mode}"

    recorded, recorded_wrong = world.call("record_call", _call(name), mode, key=RECORDER)
    health, health_wrong = world.call("conversation_health", {"conversation": name}, mode)

    assert (recorded_wrong, health_wrong) == (False, False)
    assert recorded["health"]["level"] == "healthy"
    assert recorded["duplicate"] is False
    assert (health["id"], health["generation"], health["round"]) == (name, 1, 1)
    assert health["health"] == recorded["health"]
    assert health["remediation"]["active"] is False
    assert health["reminders"] == []
    assert world.read(f"helmdeck://conversation-health/{name}", mode) == health


def test_the_caller_of_a_recorded_call_is_the_name_of_the_key(world: World) -> None:
    recorded, _ = world.call("record_call", _call("mcp-caller"), key=RECORDER)

    assert world.http.get(f"/api/v1/calls/{recorded['id']}").json()["caller"] == "recorder"


def test_every_member_of_a_reported_call_is_kept(world: World) -> None:
    given = _call(
        "mcp-whole",
        id="mcp-whole-1",
        round=1,
        provider="openai",
        pack="web.scrape",
        purpose="verify",
        correlation_id="story-1",
        attempt=2,
        attempts=[{"number": 1}, {"number": 2}],
        caller="somebody",
        upstream_model="gpt-4o-2024",
        prompt_variant="full_steps",
        response_format="json_object",
        finish_reason="length",
        raw_content_len=12,
        latency_ms=812.4,
        ttft_ms=90,
        overhead_ms=1.5,
        status="success",
        http_status=200,
        trim={"before_bytes": 900, "after_bytes": 300, "dropped": ["pack.typical_use"], "x": 1},
        sent={"bytes": 4000, "messages": 3, "tools_bytes": 20, "images": 0},
        messages=[{"role": "user", "content": "Hello"}],
        content="{",
        decoded=False,
        started_at="2026-01-31T12:00:00+02:00",
        metadata={"a": 1},
        fit_id="fit_1",
    )

    told, is_error = world.call("record_call", given, key=RECORDER)
    again, _ = world.call("record_call", given, key=RECORDER)

    assert not is_error, told
    assert told["cause"]["name"] == "length_truncated"
    assert told["round"] == 1
    assert again["duplicate"] is True
    kept = world.http.get("/api/v1/calls/mcp-whole-1").json()
    assert kept["started_at"] == "2026-01-31T10:00:00Z"
    assert kept["latency_ms"] == 812
    assert kept["trim"] == {
        "before_bytes": 900,
        "after_bytes": 300,
        "dropped": ["pack.typical_use"],
    }
    for name in ("provider", "pack", "purpose", "caller", "attempt", "fit_id", "metadata", "sent"):
        assert kept[name] == given[name]


@both_modes
def test_a_model_that_gives_nothing_is_a_failure_with_its_cause(world: World, mode: Mode) -> None:
    told, is_error = world.call("plan", {"user_intent": INTENT, "model": "sim/mute"}, mode)

    assert is_error
    assert told["error"] == "plan_failed"
    assert told["message"]
    assert told["cause"]["name"] == "empty_completion"
    assert world.http.get(f"/api/v1/plans/{told['plan_id']}").status_code == 200


@both_modes
def test_progress_is_told_to_a_client_that_wants_it(world: World, mode: Mode) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def plan(client: Client) -> bool:
        asked = {"user_intent": INTENT, "model": "sim/slow"}
        result = await client.call_tool("plan", asked, progress_callback=note)
        return bool(result.is_error)

    assert world.visit(plan, mode) is False
    assert heard[-1][0] == 100
    assert all(total == 100 and message for _, total, message in heard)
    assert [progress for progress, _, _ in heard] == sorted(progress for progress, _, _ in heard)


def test_a_client_that_reads_no_streams_gets_its_plan_as_plain_json(world: World) -> None:
    asked = {"name": "plan", "arguments": {"user_intent": INTENT, "model": "sim/planner"}}
    params = {**asked, "_meta": {"progressToken": 7}}

    response = world.post(rpc("tools/call", params))

    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["structuredContent"]["plan_id"]


@both_modes
def test_requests_on_one_connection_do_not_wait_for_each_other(world: World, mode: Mode) -> None:
    """A plan that is made meanwhile holds up neither a ping nor another plan."""
    let_go.clear()
    before = len(world.model.heard)

    async def many(client: Client) -> tuple[list[str], list[str]]:
        asked = {"user_intent": INTENT, "model": "sim/slow.held"}
        slow = [asyncio.create_task(client.call_tool("plan", asked)) for _ in range(3)]
        async with asyncio.timeout(30):
            while len(world.model.heard) < before + 3:
                await asyncio.sleep(0.02)
        quick = await asyncio.gather(
            *(client.call_tool("record_call", _call(f"mcp-many-{n}")) for n in range(5))
        )
        assert not any(task.done() for task in slow)
        let_go.set()
        plans = await asyncio.gather(*slow)
        return (
            [result.structured_content["conversation"] for result in quick],
            [result.structured_content["plan_id"] for result in plans],
        )

    conversations, plans = world.visit(many, mode)

    assert conversations == [f"mcp-many-{n}" for n in range(5)]
    assert len(set(plans)) == 3


def test_the_server_answers_a_ping(world: World) -> None:
    """By hand: the newer protocol has none any more, and the client warns of it."""
    assert world.post(rpc("ping")).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_plan_whose_client_left_is_made_all_the_same(world: World) -> None:
    async def leave(client: Client) -> None:
        asked = {"user_intent": INTENT, "model": "sim/slow.left"}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.25):
                await client.call_tool("plan", asked)

    world.visit(leave, key=PLANNER)

    assert _outcome(world, "sim/slow.left") == "ok"


def _outcome(world: World, model: str) -> str:
    """How the only plan of a model ended. It takes half a second; a look takes 10 ms."""
    outcome = "there is none"
    for _ in range(500):
        items = world.http.get("/api/v1/plans", params={"model": model}).json()["items"]
        outcome = next((item["outcome"] for item in items), outcome)
        if outcome not in ("running", "there is none"):
            break
    return outcome
