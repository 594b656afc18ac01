"""An agent's care of its own conversation over MCP, in both eras of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mcp.world import MODES, READER, RECORDER, STRANGER, Mode, World

both_modes = pytest.mark.parametrize("mode", MODES)

CAUTION, CRITICAL = 110_000, 120_000


def _record(world: World, conversation: str, tokens: int = 5_000) -> None:
    told, is_error = world.call(
        "record_call",
        {
            "conversation": conversation,
            "model": "openai/gpt-4o",
            "usage": {"prompt_tokens": tokens, "completion_tokens": 20},
            "finish_reason": "stop",
            "content": "Yes.",
        },
        key=RECORDER,
    )
    assert not is_error, told


def _do(world: World, tool: str, mode: Mode = "auto", **given: Any) -> dict[str, Any]:
    told, is_error = world.call(tool, given, mode, key=RECORDER)
    assert not is_error, told
    return told


def _advance(world: World, conversation: str, **body: Any) -> dict[str, Any]:
    response = world.http.post(f"/api/v1/conversations/{conversation}/advance", json=body)
    assert response.status_code == 200, response.text
    told: dict[str, Any] = response.json()
    return told


@both_modes
def test_an_agent_keeps_reminders_and_knows_what_it_has(world: World, mode: Mode) -> None:
    name = f"care-{mode}"
    _record(world, name)

    first = _do(world, "add_reminder", mode, conversation=name, content="one\ntwo " + "x" * 200)
    second = _do(
        world, "add_reminder", mode, conversation=name, content="first", position=1, kind="re_entry"
    )
    moved = _do(
        world, "update_reminder", mode,
        conversation=name, reminder_id=second["reminder"]["id"], content="last", position=2,
    )  # fmt: skip
    gone = _do(
        world, "delete_reminder", mode,
        conversation=name, reminder_id=first["reminder"]["id"],
    )  # fmt: skip

    assert first["reminder"]["content"].startswith("one\ntwo ")
    assert first["reminders"][0]["begins"].startswith("one two x")
    assert len(first["reminders"][0]["begins"]) == 80
    assert [(each["position"], each["kind"]) for each in second["reminders"]] == [
        (1, "re_entry"), (2, "note"),
    ]  # fmt: skip
    assert [each["begins"][:4] for each in moved["reminders"]] == ["one ", "last"]
    assert gone["deleted"] == first["reminder"]["id"]
    assert gone["reminders"] == [
        {"id": second["reminder"]["id"], "position": 1, "kind": "re_entry", "begins": "last"}
    ]
    health, _ = world.call("conversation_health", {"conversation": name}, mode)
    assert health["reminders"] == gone["reminders"]
    kept = world.http.get(f"/api/v1/conversations/{name}/reminders").json()["items"]
    assert [(each["id"], each["content"]) for each in kept] == [(second["reminder"]["id"], "last")]


@both_modes
def test_an_agent_clears_its_mind(world: World, mode: Mode) -> None:
    name = f"clear-{mode}"
    _record(world, name, CRITICAL)
    _advance(world, name, user_prompt="  And the third? ")

    told = _do(world, "clear_mind", mode, conversation=name, reminder_content="Two are done.")
    again = _do(world, "clear_mind", mode, conversation=name)

    assert set(told) == {"round", "package", "carried"}
    assert (told["round"], told["carried"]) == (2, ["  And the third? "])
    assert "Two are done." in told["package"]
    assert again == told
    assert world.http.get(f"/api/v1/conversations/{name}").json()["round"] == 2


@both_modes
def test_the_health_tells_the_remediation(world: World, mode: Mode) -> None:
    name = f"state-{mode}"
    _record(world, name, CRITICAL)
    told = _advance(world, name)

    health, _ = world.call("conversation_health", {"conversation": name}, mode)

    assert (told["action"], told["remaining"]) == ("record_prompt", 4)
    assert health["remediation"] == {
        "active": True,
        "level": "critical",
        "grace_left": None,
        "countdown": 4,
        "next_hard_in": None,
        "followed": False,
        "braked_at": None,
    }
    assert world.read(f"helmdeck://conversation-health/{name}", mode) == health


def test_a_reminder_over_mcp_satisfies_the_guidance(world: World) -> None:
    _record(world, "obedient", CAUTION)
    strengths = []
    for _ in range(4):
        strengths.append(_advance(world, "obedient")["strength"])
        _record(world, "obedient", CAUTION)

    _do(world, "add_reminder", conversation="obedient", content="Halfway through.")

    health, _ = world.call("conversation_health", {"conversation": "obedient"})
    assert strengths == ["soft", "soft", "soft", "hard"]
    assert health["remediation"]["followed"] is True


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("add_reminder", {"content": "x"}, "conversation"),
    ("add_reminder", {"conversation": "a b", "content": "x"}, "conversation"),
    ("add_reminder", {"conversation": "..", "content": "x"}, "conversation"),
    ("add_reminder", {"conversation": "faults"}, "content"),
    ("add_reminder", {"conversation": "faults", "content": " \n"}, "content"),
    ("add_reminder", {"conversation": "faults", "content": "a\x00"}, "content"),
    ("add_reminder", {"conversation": "faults", "content": "x" * 20_001}, "content"),
    ("add_reminder", {"conversation": "faults", "content": "x", "kind": "memo"}, "kind"),
    ("add_reminder", {"conversation": "faults", "content": "x", "position": 0}, "position"),
    ("add_reminder", {"conversation": "faults", "content": "x", "text": "y"}, "text"),
    ("update_reminder", {"conversation": "faults", "content": "x"}, "reminder_id"),
    ("delete_reminder", {"conversation": "faults", "reminder_id": ""}, "reminder_id"),
    ("delete_reminder", {"conversation": "faults", "reminder_id": 7}, "reminder_id"),
    ("clear_mind", {}, "conversation"),
    ("clear_mind", {"conversation": "faults", "reminder_content": 5}, "reminder_content"),
)


def test_a_wrong_argument_is_named(world: World) -> None:
    _record(world, "faults")

    for tool, given, field in WRONG:
        told, is_error = world.call(tool, given, key=RECORDER)

        assert is_error, (tool, given)
        assert told["error"] == "invalid"
        assert [each["field"] for each in told["errors"]] == [field]


ABSENT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_reminder", {"conversation": "nobody-here", "content": "x"}),
    ("clear_mind", {"conversation": "nobody-here"}),
    ("update_reminder", {"conversation": "faults", "reminder_id": "none", "content": "x"}),
    ("delete_reminder", {"conversation": "faults", "reminder_id": "none"}),
)


@both_modes
def test_what_is_not_there_is_an_error(world: World, mode: Mode) -> None:
    _record(world, "faults")

    for tool, given in ABSENT:
        told, is_error = world.call(tool, given, mode, key=RECORDER)

        assert is_error, tool
        assert told["error"] == "not_found"
        assert told["message"]


def test_a_key_writes_only_with_the_scope_and_in_its_project(world: World) -> None:
    _record(world, "ours")
    asked = {"conversation": "ours", "content": "x"}

    by_reader, reader_is_refused = world.call("add_reminder", asked, key=READER)
    by_stranger, stranger_is_refused = world.call("add_reminder", asked, key=STRANGER)

    assert (reader_is_refused, by_reader["error"], by_reader["scope"]) == (
        True, "forbidden", "record",
    )  # fmt: skip
    assert (stranger_is_refused, by_stranger["error"]) == (True, "not_found")
    assert world.http.get("/api/v1/conversations/ours/reminders").json()["items"] == []


def test_an_agent_is_told_of_the_call_that_it_has_just_had_answered(world: World) -> None:
    """Its answer comes before the call is stored."""
    for generation in range(1, 6):
        answer = world.http.post(
            "/v1/chat/completions",
            json={
                "model": "sim/planner",
                "messages": [{"role": "user", "content": "Plan."}],
                # Two alike would be attempts at one generation.
                "temperature": generation / 10,
            },
            headers={"x-helmdash-conversation": "just-answered"},
        )
        assert answer.status_code == 200, answer.text

        told = _do_as_first(world, "conversation_health", conversation="just-answered")

        assert told["generation"] == generation


def _do_as_first(world: World, tool: str, **given: Any) -> dict[str, Any]:
    told, is_error = world.call(tool, given)
    assert not is_error, told
    return told
