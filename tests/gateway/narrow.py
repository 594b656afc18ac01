"""A model with a narrow window, in five formats: counts what it is sent, refuses what is too long.

It answers as an agent's model does: asked "ask N tools=K" it calls a tool K times and then answers
"answer to N". Asked to "read N files" it reads one after the other and knows how far it is from
nothing but its prompt. It keeps every request, so that a test can see what really was sent.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.upstreams.http import Exchange, Server

WINDOW = 8_000
BYTES_PER_TOKEN = 4
# The address of an image: a few bytes that stand for many tokens.
IMAGE, IMAGE_TOKENS = "https://images.example/page.png", 3_000
_ASK = re.compile(r"ask (\S+) tools=(\d+)")
_READ = re.compile(r"read (\d+) files")
# A file by its number, wherever the prompt tells of one: in a call, or in what is told of calls.
_FILE = re.compile(r"file\W+(\d+)")


class Narrow:
    """The server, and what it saw. Requests are told apart by their model's name."""

    def __init__(self) -> None:
        self.server = Server(self._handle)
        self.faults: list[str] = []
        self.refusals: dict[str, int] = {}
        self.dense: set[str] = set()
        """Models that suddenly find twice as many tokens in everything."""
        self.ratios: dict[str, float] = {}
        """Models with other bytes to a token than BYTES_PER_TOKEN."""
        self.unwritten: dict[str, int] = {}
        """Models that find so many tokens beside the text, as of a prompt of the server's own."""
        self._lock = threading.Lock()

    def sent(self, model: str) -> list[Any]:
        """The bodies of the requests for a model that were answered, oldest first."""
        return [seen.json for seen in self.server.seen(model) if seen.status == 200]

    def all_sent(self, model: str) -> list[Any]:
        """Those that were refused as well."""
        return [seen.json for seen in self.server.seen(model) if seen.method == "POST"]

    def environment(self) -> dict[str, str]:
        """The variables that make a HelmDash use it for every provider."""
        url = self.server.root_url
        return {
            "OPENAI_API_KEY": "sk-narrow-openai",
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_API_KEY": "sk-narrow-anthropic",
            "ANTHROPIC_BASE_URL": url,
            "GEMINI_API_KEY": "narrow-gemini",
            "GEMINI_BASE_URL": url,
            "OLLAMA_HOST": url,
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        }

    async def _handle(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.method == "GET":
            await exchange.reply(200, b'{"object":"list","data":[],"models":[]}')
            return
        body = seen.json
        for form in (
            "v1/responses",
            "chat/completions",
            "v1/messages",
            "enerateContent",
            "api/chat",
        ):
            if form in seen.path:
                break
        else:
            # What HelmDash asks of its own accord (/api/show).
            await exchange.reply(404, b'{"error":"no such thing"}')
            return
        spoken = _SPOKEN[form](body)
        ratio = self.ratios.get(str(body.get("model")), BYTES_PER_TOKEN)
        counted = [body.get("system"), spoken, body.get("tools")]
        tokens = int(len(json.dumps(counted, ensure_ascii=False)) / ratio)
        if body.get("model") in self.dense:
            tokens *= 2
        tokens += self.unwritten.get(str(body.get("model")), 0)
        tokens += IMAGE_TOKENS * json.dumps(spoken).count(IMAGE)
        self._check_pairs(spoken)
        if tokens > WINDOW:
            with self._lock:
                model = str(body.get("model", seen.path))
                self.refusals[model] = self.refusals.get(model, 0) + 1
            await exchange.reply(400, json.dumps(_refusal(form, tokens)).encode())
            return
        text, call = _say(spoken, json.dumps(body))
        reply = _REPLIES[form](body, text, call, tokens)
        if body.get("stream") and form == "chat/completions":
            await self._stream(exchange, reply)
            return
        await exchange.reply(200, json.dumps(reply).encode())

    async def _stream(self, exchange: Exchange, reply: dict[str, Any]) -> None:
        await exchange.start(200, kind="text/event-stream")
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        message = reply["choices"][0]["message"]
        calls = [{"index": 0, **call} for call in message.get("tool_calls") or ()]
        delta = {"role": "assistant", "content": message["content"], "tool_calls": calls or None}
        finish = reply["choices"][0]["finish_reason"]
        for choices, usage in (
            ([{"index": 0, "delta": delta, "finish_reason": None}], None),
            ([{"index": 0, "delta": {}, "finish_reason": finish}], None),
            ([], reply["usage"]),
        ):
            chunk = {**head, "choices": choices, "usage": usage}
            await exchange.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await exchange.write(b"data: [DONE]\n\n")
        await exchange.end()

    def _check_pairs(self, spoken: list[dict[str, Any]]) -> None:
        """As providers do: results directly after their calls, all of them."""
        open_calls: list[str] = []
        for said in spoken:
            if said["results"]:
                for result in said["results"]:
                    if result not in open_calls:
                        self.faults.append(f"a result without its call: {said}")
                        return
                    open_calls.remove(result)
                continue
            if open_calls:
                self.faults.append(f"a call without its result before: {said}")
                return
            open_calls = list(said["calls"])
        if open_calls:
            self.faults.append("a call without its result at the end")


@contextmanager
def run_narrow() -> Iterator[Narrow]:
    narrow = Narrow()
    narrow.server.start()
    try:
        yield narrow
    finally:
        narrow.server.stop()


def texts(messages: list[dict[str, Any]], role: str = "user") -> list[str]:
    """The texts of one role, of any format's messages."""
    found = []
    for message in messages:
        if message.get("role") != role:
            continue
        content = message.get("content", message.get("parts"))
        if isinstance(content, str):
            found.append(content)
        else:
            found += [part["text"] for part in content or () if "text" in part]
    return found


def _say(spoken: list[dict[str, Any]], prompt: str) -> tuple[str, dict[str, Any] | None]:
    """What the model says, and the arguments of the call it makes, if it makes one."""
    asked, results = None, 0
    for said in spoken:
        found = _READ.search(said["text"]) if said["role"] == "user" else None
        if found:
            done = max(map(int, _FILE.findall(prompt)), default=0)
            if done >= int(found[1]):
                return f"read all {done}", None
            return f"reading the next one after {done}", {"file": done + 1}
        found = _ASK.search(said["text"]) if said["role"] == "user" else None
        if found:
            asked, results = found, 0
        results += len(said["results"])
    if asked is None:
        return "nothing was asked", None
    if results < int(asked[2]):
        return f"looking into {asked[1]}", {"at": "the next page"}
    return f"answer to {asked[1]}", None


def _spoken_openai(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "role": message["role"],
            "text": _joined(message.get("content")),
            "images": _images_of(message.get("content")),
            "calls": [call.get("id", "ollama") for call in message.get("tool_calls") or ()],
            "results": (
                [message.get("tool_call_id", "ollama")] if message["role"] == "tool" else []
            ),
        }
        for message in body["messages"]
    ]


def _spoken_responses(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return [
        {
            "role": item.get("role", "assistant" if "arguments" in item else "tool"),
            "text": _joined(item.get("content")),
            "calls": [item["call_id"]] if "arguments" in item else [],
            "results": [item["call_id"]] if "output" in item else [],
            "pad": item.get("output"),
        }
        for item in items
    ]


def _spoken_anthropic(body: dict[str, Any]) -> list[dict[str, Any]]:
    spoken = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [] if isinstance(content, str) else content
        spoken.append(
            {
                "role": message["role"],
                "text": _joined(content),
                "calls": [block["id"] for block in blocks if block["type"] == "tool_use"],
                "results": [
                    block["tool_use_id"] for block in blocks if block["type"] == "tool_result"
                ],
                "pad": [block for block in blocks if block["type"] == "tool_result"],
            }
        )
    return spoken


def _spoken_gemini(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "role": "user" if content.get("role") == "user" else "assistant",
            "text": "".join(part.get("text", "") for part in content["parts"]),
            "calls": [
                part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part
            ],
            "results": [
                part["functionResponse"]["name"]
                for part in content["parts"]
                if "functionResponse" in part
            ],
            "pad": [part for part in content["parts"] if "functionResponse" in part],
        }
        for content in body["contents"]
    ]


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


def _images_of(content: Any) -> list[str]:
    """The addresses of a message's images, in OpenAI's format."""
    parts = content if isinstance(content, list) else ()
    return [part["image_url"]["url"] for part in parts if "image_url" in part]


def _refusal(form: str, tokens: int) -> dict[str, Any]:
    words = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
    if form == "v1/messages":
        error = {"type": "invalid_request_error", "message": words}
        return {"type": "error", "error": error}
    if form == "enerateContent":
        words = f"The input token count ({tokens}) exceeds the maximum of {WINDOW} tokens allowed."
        return {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}
    if form == "api/chat":
        return {"error": "prompt too long; exceeded max context length by 1 tokens"}
    words = f"This model's maximum context length is {WINDOW} tokens. You sent {tokens}."
    return {
        "error": {
            "message": words,
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    }


_NUMBER = iter(range(1, 1_000_000))


def _reply_openai(body: Any, text: str, call: Any, tokens: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        function = {"name": "look", "arguments": json.dumps(call)}
        message["tool_calls"] = [
            {"id": f"call_{next(_NUMBER)}", "type": "function", "function": function}
        ]
    return {
        "id": "chatcmpl-narrow",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
        ],
        "usage": {
            "prompt_tokens": tokens,
            "completion_tokens": 9,
            "total_tokens": tokens + 9,
        },
    }


def _reply_responses(body: Any, text: str, call: Any, tokens: int) -> dict[str, Any]:
    said = {"type": "output_text", "text": text, "annotations": []}
    output: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": [said]}]
    if call:
        made = {"name": "look", "arguments": json.dumps(call)}
        output.append({"type": "function_call", "call_id": f"call_{next(_NUMBER)}", **made})
    usage = {"input_tokens": tokens, "output_tokens": 9, "total_tokens": tokens + 9}
    return {
        "id": f"resp_{next(_NUMBER)}",
        "object": "response",
        "status": "completed",
        "model": body["model"],
        "output": output,
        "usage": usage,
    }


def _reply_anthropic(body: Any, text: str, call: Any, tokens: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if call:
        content.append(
            {"type": "tool_use", "id": f"toolu_{next(_NUMBER)}", "name": "look", "input": call}
        )
    return {
        "id": "msg_narrow",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 9},
    }


def _reply_gemini(body: Any, text: str, call: Any, tokens: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}]
    if call:
        parts.append({"functionCall": {"name": "look", "args": call}})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": tokens,
            "candidatesTokenCount": 9,
            "totalTokenCount": tokens + 9,
        },
        "modelVersion": "gemini-narrow",
    }


def _reply_ollama(body: Any, text: str, call: Any, tokens: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        message["tool_calls"] = [{"function": {"name": "look", "arguments": call}}]
    return {
        "model": body["model"],
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": tokens,
        "eval_count": 9,
    }


_SPOKEN = {
    "v1/responses": _spoken_responses,
    "chat/completions": _spoken_openai,
    "api/chat": _spoken_openai,
    "v1/messages": _spoken_anthropic,
    "enerateContent": _spoken_gemini,
}
_REPLIES = {
    "v1/responses": _reply_responses,
    "chat/completions": _reply_openai,
    "api/chat": _reply_ollama,
    "v1/messages": _reply_anthropic,
    "enerateContent": _reply_gemini,
}
