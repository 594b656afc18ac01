"""A model that plays a tale with a real agent: it delegates, or fills the context.

By the name of the model: `tale-delegate` has the agent start a sub-agent, whose prompt is small;
`tale-fill` reports a prompt that makes the agent compact, and one that is fuller still for the
compaction itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.support.upstreams.faults import Vendor
from tests.support.upstreams.http import Exchange, Server
from tests.support.upstreams.openai import OpenAI
from tests.support.upstreams.plays import Asked, End, Play, Tokens, Use
from tests.support.upstreams.responses import Responses

PART = "Count the pomelos."
# Of a window of 128,000: above the line of comfort, and above the one where agents compact.
FULL, OVERFULL, FULLEST = 101_000, 116_000, 127_000
# About what agents send before the first word; less would look like a prompt that was cut.
SMALL = 24_000
_SUMMARY = "<analysis>Nothing.</analysis><summary>1. Primary Request: to go on.</summary>"
# What each agent starts a sub-agent with, and waits for it with.
_STARTS: dict[str, dict[str, Any]] = {
    "Agent": {"description": "count", "prompt": PART, "subagent_type": "general-purpose"},
    "task": {"description": "count", "prompt": PART, "subagent_type": "general"},
    "spawn_agent": {"message": PART},
}
_WAITS = "wait_agent"
# What Claude Code, then Codex, asks for a summary with. Single words would also be found in what an
# agent tells of the folder it stands in: the subjects of its newest commits.
_SUMS_UP = ("detailed summary of", "handoff summary")


@contextmanager
def run_tales() -> Iterator[Server]:
    """Serve both of OpenAI's APIs for the length of the block."""
    server = Server(_answer)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def _answer(exchange: Exchange) -> None:
    body: dict[str, Any] = exchange.seen.json if exchange.seen.method == "POST" else {}
    vendor: Vendor
    if exchange.seen.path == "/v1/responses":
        vendor, items = _Namespaced(), body["input"]
    elif exchange.seen.path == "/v1/chat/completions":
        vendor, items = OpenAI(), body["messages"]
    else:
        await exchange.reply(404, b'{"error":{"message":"not here"}}')
        return
    asked = Asked(model=body["model"], stream=bool(body.get("stream")))
    play = _play(asked.behaviour, items, _tools(body.get("tools") or []))
    if not asked.stream:
        await exchange.reply(200, vendor.whole(asked, play))
        return
    await exchange.start(200, kind=vendor.stream_type)
    for frame in vendor.frames(asked, play):
        await exchange.write(frame)
    await exchange.end()


def _tools(tools: list[dict[str, Any]]) -> list[str]:
    """The names by which tools are called; those within a namespace keep theirs beside it."""
    found = []
    for tool in tools:
        if tool["type"] == "namespace":
            found += [f"{tool['name']}/{inner['name']}" for inner in tool["tools"]]
        elif tool["type"] == "function":
            found.append((tool.get("function") or tool)["name"])
    return found


def _play(story: str, items: list[dict[str, Any]], tools: list[str]) -> Play:
    said = [json.dumps(item) for item in items]
    users = [text for item, text in zip(items, said, strict=True) if item.get("role") == "user"]
    results = [item for item in items if "call_id" in item or "tool_call_id" in item]
    plain = Play(pieces=("Seven",), tokens=Tokens(prompt=SMALL))
    if story == "fill":
        if "Now go on" in users[-1]:
            return plain
        is_told = any(word in users[-1].lower() for word in _SUMS_UP)
        if not tools or is_told:
            return replace(plain, pieces=(_SUMMARY,), tokens=Tokens(prompt=FULLEST))
        return replace(plain, tokens=Tokens(prompt=OVERFULL))
    if any(PART in text for text in users) or not tools:
        return plain
    full = replace(plain, tokens=Tokens(prompt=FULL))
    starts = next((name for name in tools if _bare(name) in _STARTS), None)
    if starts is not None and not results:
        return replace(full, pieces=(), uses=(_use(starts, _STARTS[_bare(starts)]),), end=End.TOOLS)
    waits = next((name for name in tools if _bare(name) == _WAITS), None)
    started = re.search(r"agent_id\W+([0-9a-f-]{36})", said[-1])
    if waits is not None and started is not None:
        told = {"targets": [started[1]], "timeout_ms": 30_000}
        return replace(full, pieces=(), uses=(_use(waits, told),), end=End.TOOLS)
    return full


def _bare(name: str) -> str:
    return name.replace("__", "/").rpartition("/")[2]


def _use(name: str, arguments: dict[str, Any]) -> Use:
    return Use(id=f"call_{_bare(name)}", name=name, arguments=arguments)


class _Namespaced(Responses):
    """Calls of tools within a namespace say so: `space/name` becomes two members."""

    def whole(self, asked: Asked, play: Play) -> bytes:
        return _parted(super().whole(asked, play))

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        return [_parted(frame) for frame in super().frames(asked, play)]


def _parted(data: bytes) -> bytes:
    return re.sub(rb'"name": "(\w+)/(\w+)"', rb'"namespace": "\1", "name": "\2"', data)
