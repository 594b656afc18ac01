"""A simulated OpenAI whose models plan: what one answers is told by its name.

`gpt-plan`, `gpt-route`, `gpt-pick` answer well for `examples.CATALOG`; the others in a way of their
own. A mark after a dot makes a model's name a test's own (tests/support/upstreams/plays.py).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.upstreams.http import Exchange, Server
from tests.support.upstreams.openai import OpenAI, read
from tests.support.upstreams.plays import End, Play

# What stands before the slash.
NAME = "sim"
URL = "https://example.com/post"
INTENT = f"Read {URL} and tell me in five lines what it says."

_SCRAPE = {"tool": "web.scrape", "args": {"url": URL}, "rationale": "Get the text."}
_SUM_UP = {"tool": "doc.summarize", "args": {"lines": 5}, "rationale": "Make it short."}
_DUB = {"tool": "video.dub", "args": {}, "rationale": "Dub the video."}
_ANSWERS: dict[str, Any] = {
    "plan": {"steps": [_SCRAPE, _SUM_UP], "complexity": "pack-chain", "reasoning": "In order."},
    "pick": {"steps": [_SCRAPE], "complexity": "pack-chain", "more_steps_likely": True},
    "gap": {"steps": [_SCRAPE, _DUB], "reasoning": "Nothing dubs."},
    "route": {
        "recommendation": {
            "kind": "pipeline",
            "id": "digest",
            "suggested_inputs": {"url": URL},
            "why": "It does both.",
        },
        "alternatives": [{"kind": "pack", "id": "web.scrape", "why": "The text alone."}],
        "gap_warning": None,
        "reasoning": "One entry is enough.",
    },
}
_ANSWERS["slow"] = _ANSWERS["plan"]
_PLAYS = {
    "prose": Play(pieces=("There is no way to do that.",)),
    "late": Play(pieces=("There was no way to do that.",)),
    "empty": Play(pieces=()),
    "filtered": Play(pieces=(), end=End.FILTER),
}


class Planner:
    """The server. `gpt-slow` and `gpt-late`, which gives no plan, answer once `gate` is set."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.server = Server(self._serve)
        self._vendor = OpenAI()

    @property
    def base_url(self) -> str:
        return f"{self.server.root_url}/v1"

    async def _serve(self, exchange: Exchange) -> None:
        asked = read(exchange.seen.json)
        if asked.behaviour == "locked":
            trouble = self._vendor.trouble("key")
            await exchange.reply(trouble.status, trouble.body)
            return
        while asked.behaviour in ("slow", "late") and not self.gate.is_set():
            await asyncio.sleep(0.01)
        play = _PLAYS.get(asked.behaviour) or Play(pieces=(json.dumps(_ANSWERS[asked.behaviour]),))
        await exchange.reply(200, self._vendor.whole(asked, play))


@contextmanager
def run_planner() -> Iterator[Planner]:
    """Serve it for the length of the block."""
    planner = Planner()
    planner.server.start()
    try:
        yield planner
    finally:
        planner.server.stop()
