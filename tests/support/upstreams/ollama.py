"""Ollama's API as it is on the wire: chat, generate, embed, tags, show, ps, version.

Source: docs.ollama.com/api and the server's own types (api/types.go).
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.upstreams.checking import LISTED, Invalid, behaviours, known, need
from tests.support.upstreams.faults import Stage, Trouble
from tests.support.upstreams.http import Exchange
from tests.support.upstreams.plays import Asked, End, Play, Tokens

PREFIX = "llama"
VECTOR = (0.5, -0.25, 0.125, 1.0)
CONTEXT_LENGTH = 131_072
_CREATED = "2026-01-01T00:00:00.385406455Z"
_DONE = {
    End.STOP: "stop",
    End.LENGTH: "length",
    End.TOOLS: "stop",
    End.REFUSAL: "stop",
    End.FILTER: "stop",
    End.NOT_SAID: None,
}
_CHAT = (
    "model messages stream tools format options keep_alive think truncate shift logprobs".split()
)
_GENERATE = """
    model prompt suffix system template context stream raw format images options keep_alive think
    truncate shift
""".split()
_MESSAGE = "role content thinking images tool_calls tool_name tool_call_id name".split()


class Ollama:
    """The wire format; see `faults.Vendor`. `is_chat` is read from the request's own path."""

    stream_type = "application/x-ndjson"

    def __init__(self, *, is_chat: bool) -> None:
        self._is_chat = is_chat

    def whole(self, asked: Asked, play: Play) -> bytes:
        said = self._said(play.text, play.thinking, _tool_calls(play))
        return _json({**_envelope(asked), **said, **self._end(play)})

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        parts = [self._said("", thought, []) for thought in play.thoughts]
        parts += [self._said(piece, "", []) for piece in play.pieces]
        parts += [self._said("", "", [call]) for call in _tool_calls(play)]
        frames = [{**_envelope(asked), **part, "done": False} for part in parts]
        frames.append({**_envelope(asked), **self._said("", "", []), **self._end(play)})
        return [_json(frame) + b"\n" for frame in frames]

    def trouble(self, kind: str) -> Trouble:
        status, message = _TROUBLE.get(kind, _TROUBLE["server"])
        return Trouble(status=status, body=_json({"error": message}))

    def trouble_in_stream(self) -> bytes:
        return _json({"error": "an error was encountered while running the model"}) + b"\n"

    def _said(self, text: str, thinking: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        thought = {"thinking": thinking} if thinking else {}
        if not self._is_chat:
            return {"response": text, **thought}
        message: dict[str, Any] = {"role": "assistant", "content": text, **thought}
        if calls:
            message["tool_calls"] = calls
        return {"message": message}

    def _end(self, play: Play) -> dict[str, Any]:
        reason = _DONE[play.end]
        end: dict[str, Any] = {"done": True}
        if reason is not None:
            end["done_reason"] = reason
        if not self._is_chat:
            end["context"] = [1, 2, 3]
        return {**end, **_usage(play)}


class OllamaServer:
    """Routes of an Ollama server."""

    def __init__(self, *, outsider_url: str) -> None:
        self._chat = Stage(Ollama(is_chat=True), outsider_url=outsider_url)
        self._generate = Stage(Ollama(is_chat=False), outsider_url=outsider_url)

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        try:
            await self._route(exchange, f"{seen.method} {seen.path}")
        except Invalid as error:
            await exchange.reply(400, _json({"error": str(error)}))

    async def _route(self, exchange: Exchange, route: str) -> None:
        seen = exchange.seen
        match route:
            case "POST /api/chat":
                await self._chat.perform(exchange, read_chat(seen.json))
            case "POST /api/generate":
                await self._generate.perform(exchange, read_generate(seen.json))
            case "POST /api/embed":
                await exchange.reply(200, _embed(seen.json))
            case "POST /api/show":
                await _show(exchange, seen.json)
            case "GET /api/tags":
                await exchange.reply(200, _json({"models": [_model(name) for name in _listed()]}))
            case "GET /api/ps":
                await exchange.reply(200, _json({"models": []}))
            case "GET /api/version":
                await exchange.reply(200, _json({"version": "0.13.1"}))
            case "GET /":
                await exchange.reply(200, b"Ollama is running", kind="text/plain; charset=utf-8")
            case _:
                await exchange.reply(404, b"404 page not found", kind="text/plain")


def read_chat(body: dict[str, Any]) -> Asked:
    """Read a chat as Ollama does. Raises Invalid."""
    known(body, _CHAT, "")
    need(body.get("model"), "model", "model is required")
    messages = body.get("messages") or []
    for at, message in enumerate(messages):
        known(message, _MESSAGE, f"messages[{at}].")
        role = message.get("role")
        need(role in {"system", "user", "assistant", "tool"}, "role", f"invalid role: {role}")
        need(
            isinstance(message.get("content", ""), str),
            f"messages[{at}].content",
            "json: cannot unmarshal array into Go struct field of type string",
        )
        for call in message.get("tool_calls") or []:
            arguments = call["function"]["arguments"]
            need(isinstance(arguments, dict), "arguments", "json: cannot unmarshal string")
        for image in message.get("images") or []:
            need(not image.startswith("data:"), "images", "illegal base64 data at input byte 4")
    tools = body.get("tools") or []
    return Asked(
        model=body["model"],
        stream=body.get("stream", True),
        tools=tuple(tool["function"]["name"] for tool in tools),
        has_tool_result=bool(messages) and messages[-1]["role"] == "tool",
        schema=_schema(body.get("format")),
        images=sum(len(message.get("images") or []) for message in messages),
    )


def read_generate(body: dict[str, Any]) -> Asked:
    """Read a completion as Ollama does. Raises Invalid."""
    known(body, _GENERATE, "")
    need(body.get("model"), "model", "model is required")
    return Asked(
        model=body["model"],
        stream=body.get("stream", True),
        schema=_schema(body.get("format")),
        images=len(body.get("images") or []),
    )


def _schema(wanted: object) -> dict[str, Any] | None:
    if wanted in (None, ""):
        return None
    if wanted == "json":
        return {}
    need(isinstance(wanted, dict), "format", f"invalid format: {wanted!r}")
    assert isinstance(wanted, dict)
    return wanted


def _envelope(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "created_at": _CREATED}


def _tool_calls(play: Play) -> list[dict[str, Any]]:
    return [
        {
            "id": use.id,
            "function": {"index": index, "name": use.name, "arguments": dict(use.arguments)},
        }
        for index, use in enumerate(play.uses)
    ]


def _usage(play: Play) -> dict[str, Any]:
    if play.usage_form in {"missing", "null"} or play.tokens is None:
        return {}
    return usage_of(play.tokens)


def usage_of(tokens: Tokens) -> dict[str, Any]:
    """Usage as Ollama counts; counts of 0 are left out (`omitempty`)."""
    counts = {"prompt_eval_count": tokens.prompt, "eval_count": tokens.completion}
    return {
        "total_duration": 4_883_583_458,
        "load_duration": 1_334_875,
        **{name: count for name, count in counts.items() if count},
        "prompt_eval_duration": 342_546_000,
        "eval_duration": 4_535_599_000,
    }


def _embed(body: dict[str, Any]) -> bytes:
    known(body, "model input truncate dimensions keep_alive options".split(), "")
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    return _json(
        {
            "model": body["model"],
            "embeddings": [list(VECTOR) for _ in texts],
            "total_duration": 14_143_917,
            "load_duration": 1_019_500,
            "prompt_eval_count": 8,
        }
    )


def _listed() -> list[str]:
    return [*behaviours(PREFIX, LISTED), "sim-embed"]


def _model(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": _CREATED,
        "size": 3_338_801_804,
        "digest": "a2af6cc3eb7fa8be8504abaf9b04e88f17a119ec3f04a3addf55f92841195f5a",
        "details": _details(),
    }


def _details() -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "8.0B",
        "quantization_level": "Q4_K_M",
    }


async def _show(exchange: Exchange, body: dict[str, Any]) -> None:
    name = body.get("model") or body.get("name")
    if name not in _listed():
        await exchange.reply(404, _json({"error": f"model '{name}' not found"}))
        return
    answer = {
        "modelfile": "# Modelfile",
        "parameters": 'num_ctx 8192\nstop "<|eot_id|>"',
        "template": "{{ .Prompt }}",
        "details": _details(),
        "model_info": {
            "general.architecture": "llama",
            "general.parameter_count": 8_030_261_248,
            "llama.context_length": CONTEXT_LENGTH,
        },
        "capabilities": ["completion", "tools"],
        "modified_at": _CREATED,
    }
    await exchange.reply(200, _json(answer))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_TROUBLE: dict[str, tuple[int, str]] = {
    "rate": (429, "too many requests"),
    "server": (500, "llama runner process has terminated: signal: killed"),
    "overloaded": (503, "server busy, please try again. maximum pending requests exceeded"),
    "key": (401, "unauthorized"),
    "model": (404, "model 'llama-no-such-model' not found"),
    "overflow": (400, "the input length exceeds the context length"),
}
