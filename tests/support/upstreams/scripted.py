"""An OpenAI-shaped model whose answers a test writes: a function of the prompt it was sent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from tests.support.upstreams.http import Exchange, Seen, Server

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A request as a model sees it."""

    model: str
    system: str
    user: str
    max_tokens: int
    json_mode: bool

    @property
    def bytes(self) -> int:
        return len(self.system.encode()) + len(self.user.encode())

    @property
    def is_filter(self) -> bool:
        return "tool-filter assistant" in self.system

    @property
    def wants_one(self) -> bool:
        """The prompt asks for the next step only."""
        return "exactly one step" in self.system

    def number_of(self, entry: str) -> int | None:
        """The number an entry has in the list of a filter pass."""
        found = re.search(rf"^(\d+)\. {re.escape(entry)}\b", self.user, re.MULTILINE)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the model answers; more than `max_tokens` is cut off as a provider cuts it."""

    content: str | None = ""
    finish: str | None = "stop"
    reasoning: str = ""
    status: int = 200
    error: str = ""
    delay_s: float = 0.0
    # Not before it is set; half a minute at most.
    until: Event | None = None
    refusal: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[Heard], Said]


class ScriptedModel:
    """Where it listens, and what it was asked."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def base_url(self) -> str:
        """What OPENROUTER_BASE_URL and the like are set to."""
        return f"{self._server.root_url}/v1"

    @property
    def heard(self) -> list[Heard]:
        """The chat requests so far, oldest first."""
        return [_heard(seen) for seen in self._server.seen() if seen.method == "POST"]


@contextmanager
def run_scripted(script: Script) -> Iterator[ScriptedModel]:
    """Serve a script for the length of the block."""

    async def handle(exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.method == "GET":
            await exchange.reply(200, b'{"object":"list","data":[]}')
            return
        heard = _heard(seen)
        said = script(heard)
        if said.delay_s:
            await asyncio.sleep(said.delay_s)
        if said.until is not None:
            await asyncio.to_thread(said.until.wait, 30)
        if said.status >= 400:
            error = {"error": {"message": said.error or "no", "type": "server_error"}}
            await exchange.reply(said.status, json.dumps(error).encode(), **said.headers)
            return
        await exchange.reply(200, json.dumps(_answer(heard, said)).encode())

    server = Server(handle)
    server.start()
    try:
        yield ScriptedModel(server)
    finally:
        server.stop()


def _heard(seen: Seen) -> Heard:
    body: Any = seen.json
    texts = {message["role"]: _text(message["content"]) for message in body["messages"]}
    return Heard(
        model=body["model"],
        system=texts.get("system", ""),
        user=texts.get("user", ""),
        max_tokens=body.get("max_tokens") or body.get("max_completion_tokens") or 10_000,
        json_mode=(body.get("response_format") or {}).get("type") == "json_object",
    )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _answer(heard: Heard, said: Said) -> dict[str, Any]:
    content, finish = said.content, said.finish
    room = heard.max_tokens * _BYTES_PER_TOKEN - len(said.reasoning)
    if content is not None and len(content) > room:
        content, finish = content[: max(room, 0)], "length"
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": said.refusal}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    prompt = heard.bytes // _BYTES_PER_TOKEN
    spent = (len(content or "") + len(said.reasoning)) // _BYTES_PER_TOKEN
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": heard.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": spent,
            "total_tokens": prompt + spent,
        },
    }
