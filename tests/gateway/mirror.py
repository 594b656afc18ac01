"""An upstream of all four vendors at once, which answers with what a test puts there.

And what each client of the gateway sends, with a place for something hostile in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.upstreams.http import Exchange, Server

UPSTREAMS = ("openai", "anthropic", "gemini", "ollama")
# OpenAI's other API, at an address of its own: an upstream that speaks it alone.
RESPONSES = "responses"
_RESPONSES_PATH = "/alone/v1"
SHAPES = (
    "openai",
    "openai_responses",
    "anthropic",
    "gemini",
    "gemini_array",
    "ollama",
    "ollama_generate",
)
_JSON = "application/json"
USAGE: Mapping[str, Any] = {
    "openai": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    "anthropic": {"input_tokens": 12, "output_tokens": 3},
    "gemini": {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15},
    "ollama": {"prompt_eval_count": 12, "eval_count": 3},
    RESPONSES: {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15},
}


@dataclass(slots=True)
class Mirror:
    """What the upstream says next; None: a plain reply."""

    whole: bytes | None = None
    stream: bytes | None = None
    status: int = 200
    media: str = ""
    """The content type; "": as the vendor's."""
    coding: str = ""
    """The content coding that the reply claims; "": none."""
    posts: int = 0
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Server(self._answer, asides=frozenset({"/api/show"}))

    def forget(self) -> None:
        """Plain replies again."""
        self.whole = self.stream = None
        self.status, self.media, self.posts = 200, "", 0
        self.coding = ""

    def environment(self) -> dict[str, str]:
        """The variables that make a HelmDash use it for every vendor."""
        url = self.server.root_url
        return {
            "OPENAI_API_KEY": "sk-mirror-1",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_API_KEY": "sk-mirror-2",
            "ANTHROPIC_BASE_URL": url,
            "GEMINI_API_KEY": "sk-mirror-3",
            "GEMINI_BASE_URL": url,
            "OLLAMA_HOST": url,
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        }

    @property
    def responses_url(self) -> str:
        """The address of the upstream that speaks the Responses API alone."""
        return f"{self.server.root_url}{_RESPONSES_PATH}"

    async def _answer(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.method != "POST" or seen.path == "/api/show":
            await exchange.reply(404, b'{"error":"not here"}')
            return
        if seen.path.endswith("/responses") and not seen.path.startswith(_RESPONSES_PATH):
            await exchange.reply(404, b'{"detail":"Not Found"}')
            return
        self.posts += 1
        kind = _kind_of(seen.path)
        headers = {"content-encoding": self.coding} if self.coding else {}
        if self.stream is not None:
            ndjson = kind == "ollama"
            media = "application/x-ndjson" if ndjson else "text/event-stream"
            await exchange.reply(self.status, self.stream, kind=self.media or media, **headers)
            return
        body = self.whole if self.whole is not None else json.dumps(plain_reply(kind)).encode()
        if self.whole is None and seen.path == "/api/generate":
            body = json.dumps(
                {"model": "m", "response": "Hi", "done": True, **USAGE[kind]}
            ).encode()
        await exchange.reply(self.status, body, kind=self.media or _JSON, **headers)


def _kind_of(path: str) -> str:
    if path.startswith("/api/"):
        return "ollama"
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return RESPONSES
    return "openai" if path.endswith("/chat/completions") else "gemini"


def plain_reply(
    kind: str, *, usage: object = None, arguments: object = None, **extra: Any
) -> dict[str, Any]:
    """A whole reply of a vendor; `arguments`: of a tool that it calls."""
    told = USAGE[kind] if usage is None else usage
    wants_tool = arguments is not None
    match kind:
        case "openai":
            message: dict[str, Any] = {"role": "assistant", "content": "Hi"}
            if wants_tool:
                call = {"name": "look", "arguments": arguments}
                message["tool_calls"] = [{"id": "c1", "type": "function", "function": call}]
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return {"id": "r", "model": "m", "choices": [choice], "usage": told, **extra}
        case "anthropic":
            content: list[dict[str, Any]] = [{"type": "text", "text": "Hi"}]
            if wants_tool:
                content.append({"type": "tool_use", "id": "c1", "name": "look", "input": arguments})
            head = {"id": "r", "type": "message", "role": "assistant", "model": "m"}
            return {
                **head, "content": content, "stop_reason": "end_turn", "usage": told, **extra
            }  # fmt: skip
        case "gemini":
            parts: list[dict[str, Any]] = [{"text": "Hi"}]
            if wants_tool:
                parts.append({"functionCall": {"name": "look", "args": arguments}})
            candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
            return {"candidates": [candidate], "usageMetadata": told, **extra}
        case "responses":
            said_text = {"type": "output_text", "text": "Hi"}
            items: list[dict[str, Any]] = [
                {"id": "m1", "type": "message", "role": "assistant", "content": [said_text]}
            ]
            if wants_tool:
                named = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "look"}
                items.append({**named, "arguments": arguments})
            head = {"id": "r", "object": "response", "status": "completed", "model": "m"}
            return {**head, "output": items, "usage": told, **extra}
        case _:
            said: dict[str, Any] = {"role": "assistant", "content": "Hi"}
            if wants_tool:
                said["tool_calls"] = [{"function": {"name": "look", "arguments": arguments}}]
            counts = told if isinstance(told, dict) else {"prompt_eval_count": told}
            return {"model": "m", "message": said, "done": True, **counts, **extra}


def streamed_reply(kind: str, **over: Any) -> bytes:
    """The same as a stream of one piece."""
    whole = plain_reply(kind, **over)
    if kind == "ollama":
        return json.dumps(whole).encode() + b"\n"
    if kind == "gemini":
        return b"data: " + json.dumps(whole).encode() + b"\n\n"
    if kind == "openai":
        (choice,) = whole.pop("choices")
        delta = {"index": 0, "delta": choice["message"], "finish_reason": "stop"}
        for index, call in enumerate(choice["message"].get("tool_calls", ())):
            call["index"] = index
        return b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({**whole, "choices": [delta]}).encode()
    if kind == RESPONSES:
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
        for index, item in enumerate(whole["output"]):
            for step in ("added", "done"):
                kind_of_event = f"response.output_item.{step}"
                events.append({"type": kind_of_event, "output_index": index, "item": item})
        return _sse([*events, {"type": "response.completed", "response": whole}])
    usage, content = whole.pop("usage"), whole.pop("content")
    events = [{"type": "message_start", "message": {**whole, "content": [], "usage": usage}}]
    for index, block in enumerate(content):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    return _sse([*events, {"type": "message_stop"}])


def _sse(events: list[dict[str, Any]]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def path_of(shape: str, model: str, *, stream: bool = False) -> str:
    """Where a client of this API sends a chat."""
    match shape:
        case "openai":
            return "/v1/chat/completions"
        case "openai_responses":
            return "/v1/responses"
        case "anthropic":
            return "/v1/messages"
        case "ollama":
            return "/api/chat"
        case "ollama_generate":
            return "/api/generate"
        case "gemini_array":
            return f"/v1beta/models/{model}:streamGenerateContent"
        case _:
            verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"/v1beta/models/{model}:{verb}"


def chat(
    shape: str,
    model: str,
    *,
    stream: bool = False,
    text: object = "Hello",
    schema: object = None,
    arguments: object = None,
    tools: int = 1,
    tool: str = "look",
    call_id: str = "c1",
    **extra: Any,
) -> dict[str, Any]:
    """The body of a chat; `schema` of a tool, `arguments` of an earlier call of it."""
    named: dict[str, Any] = {"model": model, "stream": stream}
    names = [tool if number == 0 else f"{tool}{number}" for number in range(tools)]
    if shape in ("openai", "ollama"):
        messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
        if arguments is not None:
            is_text = shape == "openai" and not isinstance(arguments, str)
            written: object = json.dumps(arguments) if is_text else arguments
            call = {
                "id": call_id,
                "type": "function",
                "function": {"name": tool, "arguments": written},
            }
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call_id, "content": "done"})
        offered = [
            {"type": "function", "function": {"name": name, "parameters": schema}} for name in names
        ]
        return {
            **named,
            "messages": messages,
            **({"tools": offered} if schema is not None else {}),
            **extra,
        }
    if shape == "openai_responses":
        return _responses(named, text, schema, arguments, names, call_id) | extra
    if shape == "ollama_generate":
        return {**named, "prompt": text, **extra}
    if shape == "anthropic":
        turns: list[dict[str, Any]] = [{"role": "user", "content": text}]
        if arguments is not None:
            use = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
            turns.append({"role": "assistant", "content": [use]})
            result = {"type": "tool_result", "tool_use_id": call_id, "content": "done"}
            turns.append({"role": "user", "content": [result]})
        named_tools: list[Any] = [{"name": name, "input_schema": schema} for name in names]
        return {
            **named,
            "max_tokens": 99,
            "messages": turns,
            **({"tools": named_tools} if schema is not None else {}),
            **extra,
        }
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": text}]}]
    if arguments is not None:
        asked = {"functionCall": {"name": tool, "args": arguments}}
        answered = {"functionResponse": {"name": tool, "response": {"result": "done"}}}
        contents.append({"role": "model", "parts": [asked]})
        contents.append({"role": "user", "parts": [answered]})
    declared = [{"name": name, "parametersJsonSchema": schema} for name in names]
    offer = {"tools": [{"functionDeclarations": declared}]} if schema is not None else {}
    told: dict[str, Any] = {"contents": contents, **offer, **extra}
    return told


def _responses(
    named: dict[str, Any],
    text: object,
    schema: object,
    arguments: object,
    names: list[str],
    call_id: str,
) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"role": "user", "content": text}]
    if arguments is not None:
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"call_id": call_id, "name": names[0], "arguments": written}
        items.append({"type": "function_call", **call})
        items.append({"type": "function_call_output", "call_id": call_id, "output": "done"})
    tools = [{"type": "function", "name": name, "parameters": schema} for name in names]
    return {**named, "input": items, **({"tools": tools} if schema is not None else {})}
