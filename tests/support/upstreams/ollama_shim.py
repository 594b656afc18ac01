"""A small Ollama: tags, show, chat, generate, version, and windows that cut as Ollama's do.

A prompt longer than `num_ctx` loses its front: what is left has half of the window and two tokens,
the answer is a 200, and its count is that of what was left. Behind it is the real local model
(`run_model`), or nothing but an echo, which counts words and is there at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.model import LocalModel
from tests.support.upstreams.http import Exchange, Seen, Server

MODEL = "tiny:latest"
_CREATED = "2026-01-01T00:00:00.000000000Z"
_REFUSAL = "input length exceeds the maximum context length"


@dataclass(slots=True)
class Ways:
    """How the server behaves; tests change it as they go."""

    refuses: bool = False
    """Answers 400 to a prompt that its window cannot hold."""
    counts: str = "cut"
    """What prompt_eval_count says: cut | none | whole."""
    trained: int | None = 8192
    configured: int | None = None
    default: int = 4096
    """The window of a request that names none."""
    loaded: int | None = None
    """What /api/ps tells; none: the model is loaded, and an old server does not say how."""
    architecture: str = "llama"
    more_info: dict[str, Any] = field(default_factory=dict)
    broken: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Answers by path."""
    hangs: set[str] = field(default_factory=set)
    breaks_stream: bool = False
    only: str = ""
    """"native" or "openai": the other API is not there."""


class Shim:
    """The server's handler."""

    def __init__(self, model: LocalModel | None = None) -> None:
        self.ways = Ways()
        self.name = model.name if model else MODEL
        self._mind: _Mind = _Real(model) if model else _Echo()

    async def __call__(self, exchange: Exchange) -> None:
        seen, ways = exchange.seen, self.ways
        if seen.path in ways.hangs:
            await exchange.hang()
        if seen.path in ways.broken:
            status, body = ways.broken[seen.path]
            await exchange.reply(status, body)
            return
        is_native = seen.path.startswith("/api/")
        if ways.only and is_native is not (ways.only == "native"):
            await exchange.reply(404, b"404 page not found", kind="text/plain")
            return
        match f"{seen.method} {seen.path}":
            case "GET /api/tags":
                listed = {"name": self.name, "model": self.name, "details": {}}
                await _say(exchange, {"models": [listed]})
            case "GET /api/version":
                await _say(exchange, {"version": "0.13.1"})
            case "GET /v1/models":
                await _say(exchange, {"object": "list", "data": [{"id": self.name}]})
            case "POST /v1/chat/completions":
                await _say(exchange, _completion(self.name))
            case "GET /api/ps":
                running: dict[str, Any] = {"name": self.name, "model": self.name}
                if ways.loaded is not None:
                    running["context_length"] = ways.loaded
                await _say(exchange, {"models": [running]})
            case "POST /api/show":
                await self._show(exchange)
            case "POST /api/generate" | "POST /api/chat":
                await self._answer(exchange)
            case _:
                await exchange.reply(404, b"404 page not found", kind="text/plain")

    async def _show(self, exchange: Exchange) -> None:
        ways = self.ways
        if exchange.seen.json.get("model") != self.name:
            await _say(exchange, {"error": "model not found"}, status=404)
            return
        info: dict[str, Any] = {"general.architecture": ways.architecture, **ways.more_info}
        if ways.trained is not None:
            info[f"{ways.architecture}.context_length"] = ways.trained
        shown = {"details": {}, "model_info": info, "capabilities": ["completion"]}
        if ways.configured is not None:
            shown["parameters"] = (
                f'stop  "<|end|>"\nnum_ctx                        {ways.configured}'
            )
        await _say(exchange, shown)

    async def _answer(self, exchange: Exchange) -> None:
        asked = exchange.seen.json
        is_chat = exchange.seen.path == "/api/chat"
        if asked.get("model") != self.name:
            await _say(exchange, {"error": f"model '{asked.get('model')}' not found"}, status=404)
            return
        options = asked.get("options") or {}
        window = options.get("num_ctx") or self.ways.configured or self.ways.default
        tokens = await self._mind.tokens(_prompt(asked))
        kept = tokens
        if len(tokens) > window:
            if self.ways.refuses:
                await _say(exchange, {"error": _REFUSAL}, status=400)
                return
            kept = tokens[-(window // 2 + 2) :]
        text, made = await self._mind.answer(kept, options)
        end = {"done": True, "done_reason": "stop", "total_duration": 5_000_000, "eval_count": made}
        counted = {"cut": len(kept), "whole": len(tokens)}.get(self.ways.counts)
        if counted:
            end["prompt_eval_count"] = counted
        if not is_chat:
            end["context"] = list(range(len(kept)))
        await self._tell(exchange, asked, text, end, is_chat=is_chat)

    async def _tell(
        self,
        exchange: Exchange,
        asked: dict[str, Any],
        text: str,
        end: dict[str, Any],
        *,
        is_chat: bool,
    ) -> None:
        opening = {"model": asked["model"], "created_at": _CREATED}
        if not asked.get("stream", True):
            await _say(exchange, {**opening, **_said(text, is_chat=is_chat), **end})
            return
        await exchange.start(200, kind="application/x-ndjson")
        middle = len(text) // 2
        for piece in (text[:middle], text[middle:]):
            line = {**opening, **_said(piece, is_chat=is_chat), "done": False}
            await exchange.write(json.dumps(line).encode() + b"\n")
        if self.ways.breaks_stream:
            exchange.cut()
            return
        last = json.dumps({**opening, **_said("", is_chat=is_chat), **end}).encode() + b"\n"
        # Split where no line ends.
        await exchange.write(last[:30])
        await exchange.write(last[30:])
        await exchange.end()


class _Mind:
    """Reads tokens and answers."""

    async def tokens(self, text: str) -> list[Any]:
        raise NotImplementedError

    async def answer(self, tokens: list[Any], options: dict[str, Any]) -> tuple[str, int]:
        raise NotImplementedError


class _Echo(_Mind):
    """A word is a token."""

    async def tokens(self, text: str) -> list[Any]:
        return text.split()

    async def answer(self, tokens: list[Any], options: dict[str, Any]) -> tuple[str, int]:
        return f"I read {len(tokens)} words.", 4


class _Real(_Mind):
    """The model behind llama.cpp's server, whose tokenizer counts."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model

    async def tokens(self, text: str) -> list[Any]:
        found = await self._post("/tokenize", {"content": text})
        return list(found["tokens"])

    async def answer(self, tokens: list[Any], options: dict[str, Any]) -> tuple[str, int]:
        body = {
            "prompt": tokens,
            "n_predict": options.get("num_predict", 8),
            "temperature": 0,
            "cache_prompt": False,
        }
        found = await self._post("/completion", body)
        return found["content"], found["tokens_predicted"]

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=240, trust_env=False, verify=False) as client:
            answer = await client.post(f"{self._model.root_url}{path}", json=body)
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


@dataclass(frozen=True, slots=True)
class Ollama:
    """A running one."""

    server: Server
    shim: Shim

    @property
    def url(self) -> str:
        return self.server.root_url

    @property
    def ways(self) -> Ways:
        return self.shim.ways

    @property
    def name(self) -> str:
        """Its only model."""
        return self.shim.name

    def reset(self) -> None:
        """Behave again."""
        self.shim.ways = Ways()

    def asked(self, path: str, *, since: int = 0) -> list[Seen]:
        """The requests to a path so far."""
        return [each for each in self.server.seen()[since:] if each.path == path]


@contextmanager
def run_shim(model: LocalModel | None = None) -> Iterator[Ollama]:
    """Serve one for the length of the block."""
    shim = Shim(model)
    server = Server(shim)
    server.start()
    try:
        yield Ollama(server, shim)
    finally:
        server.stop()


def _prompt(asked: dict[str, Any]) -> str:
    if "messages" in asked:
        return "\n".join(message["content"] for message in asked["messages"])
    return "\n".join(part for part in (asked.get("system"), asked.get("prompt")) if part)


def _said(text: str, *, is_chat: bool) -> dict[str, Any]:
    if is_chat:
        return {"message": {"role": "assistant", "content": text}}
    return {"response": text}


def _completion(model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Yes."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"model": model, "choices": [choice], "usage": {"prompt_tokens": 3}}


async def _say(exchange: Exchange, body: dict[str, Any], *, status: int = 200) -> None:
    await exchange.reply(status, json.dumps(body).encode())
