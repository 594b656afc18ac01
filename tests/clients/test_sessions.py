"""Sub-agents and compactions of real agents, each call in its conversation, round and lane."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.shell import WINDOW, pasted, run
from tests.clients.tales import FULL, FULLEST, OVERFULL, SMALL, run_tales
from tests.gateway.world import World, model_of
from tests.support.upstreams.http import Server

# Upstreams of the tales, by what they speak.
CHAT, RESPONSES = "tales", "tale-answers"
_FURNISH = """
from helmdash.records.models import Upstream
for name, formats in (({chat!r}, "chat"), ({responses!r}, "responses")):
    Upstream.objects.create(name=name, kind="openai", base_url={url!r}, formats=formats,
                            models_served="tale-*", allow_private=True)
"""


@pytest.fixture(scope="module")
def tales(world: World) -> Iterator[Server]:
    with run_tales() as server:
        code = _FURNISH.format(chat=CHAT, responses=RESPONSES, url=f"{server.root_url}/v1")
        done = world.served.manage("shell", "-c", code)
        assert done.returncode == 0, done.stderr
        for name in (CHAT, RESPONSES):
            row = {"key": f"{name}/tale-", "input_tokens": WINDOW, "output_tokens": 4_000,
                   "tier": "A", "context_length": WINDOW, "evidence": "a tale"}  # fmt: skip
            world.api.post("/budgets", json=row).raise_for_status()
        time.sleep(1.0)  # what holds for a key is at most 0.9 s old
        yield server


def show(tales: Server, mark: str, *said: str) -> None:
    """What is to be seen of a walk that went wrong."""
    print(*said)
    for seen in tales.seen(mark):
        items = seen.json.get("input") or seen.json["messages"]
        tools = len(seen.json.get("tools") or [])
        print(seen.path, len(items), "items", tools, "tools; last:", str(items[-1])[:200])


def conversation(world: World, name: str) -> dict[str, Any]:
    answer = world.api.get(f"/conversations/{name}").raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("claude-code", []),
        ("codex", ["--skip-git-repo-check"]),
        ("opencode", []),
    ],
)
def test_a_sub_agents_small_prompt_leaves_its_parent_as_it_is(
    world: World, tales: Server, mark: str, programs: Path, name: str, options: list[str],
    upstream: str,
) -> None:  # fmt: skip
    model = f"{upstream}/tale-delegate.{mark}"

    # Told of the window, Claude Code would compact at what its parent reports.
    window = WINDOW if name == "opencode" else None
    script = pasted(world, name, model, *options, "'Let somebody else count.'", window=window)
    said = run(programs, programs / "homes" / mark, script)

    show(tales, mark, said)
    calls = world.calls_to(model, count=3)
    turns = [call for call in calls if call["lane"] == "main"]
    assert {(call["client"]["name"], call["cause"]) for call in turns} == {(name, None)}, said
    by_size: dict[int, set[str]] = {}
    for call in turns:
        by_size.setdefault(call["usage"]["prompt_tokens"], set()).add(call["conversation"])
    assert set(by_size) == {FULL, SMALL}
    (parent,), (part,) = by_size[FULL], by_size[SMALL]
    assert conversation(world, parent)["health"]["level"] == "caution"
    assert conversation(world, part)["health"]["level"] == "healthy"
    assert conversation(world, part)["parent"] == parent


# What each agent is told until it has compacted, and goes on.
_COMPACTING = {
    "claude-code": [["'Hello.'"], ["-c", "/compact"], ["-c", "'Now go on.'"]],
    "codex": [["'Hello.'"], ["resume", "--last", "'Now go on.'"]],
}


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_compaction_opens_a_round_and_never_makes_red(
    world: World, tales: Server, mark: str, programs: Path, name: str, upstream: str
) -> None:
    model = f"{upstream}/tale-fill.{mark}"
    options = ["--skip-git-repo-check"] if name == "codex" else []

    said = [
        run(programs, programs / "homes" / mark, pasted(world, name, model, *options, *words))
        for words in _COMPACTING[name]
    ]

    show(tales, mark, *said)
    calls = world.calls_to(model, count=3)
    compactions = [call for call in calls if call["purpose"] == "compaction"]
    turns = [call for call in calls if call["lane"] == "main"]
    assert [call["usage"]["prompt_tokens"] for call in compactions] == [FULLEST]
    assert {call["lane"] for call in compactions} == {"side"}
    assert [(call["usage"]["prompt_tokens"], call["round"]) for call in turns] == [
        (SMALL, 2),
        (OVERFULL, 1),
    ]
    assert len({call["conversation"] for call in calls}) == 1
    assert conversation(world, turns[0]["conversation"])["health"]["level"] == "healthy"


@pytest.mark.parametrize(
    ("name", "provider", "fault"),
    [
        ("claude-code", "anthropic", "cut-midway-once"),
        ("codex", "responses", "nothing-once"),
    ],
)
def test_a_stream_that_an_agent_asks_for_again_is_one_generation(
    world: World, mark: str, programs: Path, name: str, provider: str, fault: str
) -> None:
    """Claude Code asks for it without a stream then."""
    model = model_of(provider, fault, mark=mark)
    options = ["--skip-git-repo-check"] if name == "codex" else []

    script = pasted(world, name, model, *options, "'Say hello.'")
    said = run(programs, programs / "homes" / mark, script)

    assert "Hello" in said
    asked = model.rpartition("/")[2] if name == "claude-code" else model
    calls = [call for call in world.calls_to(asked, count=2) if call["lane"] == "main"]
    first, again = calls[-1], calls[-2]
    assert first["cause"] is not None, said
    assert again["cause"] is None, said
    assert [(each["generation"], each["attempt"]) for each in (first, again)] == [(1, 1), (1, 2)]
