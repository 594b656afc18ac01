"""An Ollama server over the real local model: its chats and completions, told by llama.cpp.

llama.cpp speaks OpenAI's and Anthropic's APIs itself, but not Ollama's, and Ollama comes in no
package that a test could install.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.model import LocalModel
from tests.support.upstreams.http import Exchange, Server

_OPTIONS = {"num_predict": "max_tokens", "temperature": "temperature", "seed": "seed"}
_CREATED = "2026-01-01T00:00:00.000000000Z"


class _Shim:
    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._client: httpx.AsyncClient | None = None

    async def __call__(self, exchange: Exchange) -> None:
        match exchange.seen.path:
            case "/api/tags":
                listed = {"name": self._model.name, "model": self._model.name, "details": {}}
                await exchange.reply(200, json.dumps({"models": [listed]}).encode())
            case "/api/chat" | "/api/generate":
                await self._answer(exchange)
            case path:
                await exchange.reply(404, json.dumps({"error": f"{path} not found"}).encode())

    async def _answer(self, exchange: Exchange) -> None:
        asked = exchange.seen.json
        is_chat = exchange.seen.path == "/api/chat"
        said = [_line(asked, text, end, is_chat=is_chat) async for text, end in self._ask(asked)]
        if not asked.get("stream", True):
            text = "".join(piece for piece, _ in said)
            whole = _merge(said[-1][1], text, is_chat=is_chat)
            await exchange.reply(200, json.dumps(whole).encode())
            return
        await exchange.start(200, kind="application/x-ndjson")
        for _, line in said:
            await exchange.write(json.dumps(line).encode() + b"\n")
        await exchange.end()

    async def _ask(self, asked: dict[str, Any]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Pieces of text; the last with the counts and the reason for the end."""
        messages = asked.get("messages") or [{"role": "user", "content": asked["prompt"]}]
        options = asked.get("options") or {}
        body = {
            "model": asked["model"],
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            **{_OPTIONS[name]: value for name, value in options.items() if name in _OPTIONS},
        }
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=240, trust_env=False, verify=False)
        url, reason = f"{self._model.base_url}/chat/completions", None
        async with self._client.stream("POST", url, json=body) as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                for choice in chunk["choices"]:
                    reason = choice["finish_reason"] or reason
                    if text := choice["delta"].get("content"):
                        yield text, {"done": False}
                if usage := chunk.get("usage"):
                    yield (
                        "",
                        {
                            "done": True,
                            "done_reason": reason,
                            "prompt_eval_count": usage["prompt_tokens"],
                            "eval_count": usage["completion_tokens"],
                        },
                    )


def _line(
    asked: dict[str, Any], text: str, end: dict[str, Any], *, is_chat: bool
) -> tuple[str, dict[str, Any]]:
    line = {"model": asked["model"], "created_at": _CREATED, **end}
    return text, _merge(line, text, is_chat=is_chat)


def _merge(line: dict[str, Any], text: str, *, is_chat: bool) -> dict[str, Any]:
    if is_chat:
        return {**line, "message": {"role": "assistant", "content": text}}
    return {**line, "response": text}


@contextmanager
def run_real_ollama(model: LocalModel) -> Iterator[Server]:
    """Serve it for the length of the block."""
    server = Server(_Shim(model))
    server.start()
    try:
        yield server
    finally:
        server.stop()
