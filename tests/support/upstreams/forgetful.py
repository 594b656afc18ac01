"""An Anthropic model that reads the parts of a book, one after the other, and forgets everything.

It knows how far it is from nothing but its prompt: the calls of its tool `Read` that stand there,
or what somebody tells of them. It refuses what is longer than its window, in the vendor's words.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.upstreams.http import Exchange, Server

BYTES_PER_TOKEN = 4
_NUMBER = itertools.count(1)
_TASK = re.compile(r"read all (\d+) parts of the book in (\S+?),")
_READ = re.compile(r"file_path\W+[^\"\\]*part-(\d+)\.txt")


@dataclass(slots=True)
class Forgetful:
    """The server. `read`: parts it asked for, in order; `tokens`: of each prompt it answered."""

    window: int
    read: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    refused: int = 0
    asides: int = 0
    """Calls of the client's that are not the task's: titles, classifiers, probes."""
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = Server(self._handle)

    async def _handle(self, exchange: Exchange) -> None:
        seen = exchange.seen
        if seen.method != "POST" or not seen.path.endswith("/v1/messages"):
            await exchange.reply(404, b'{"type":"error","error":{"type":"not_found_error"}}')
            return
        body = seen.json
        prompt = json.dumps([body.get("system"), body["messages"]], ensure_ascii=False)
        tokens = (len(prompt) + len(json.dumps(body.get("tools") or []))) // BYTES_PER_TOKEN
        if tokens > self.window:
            self.refused += 1
            words = f"prompt is too long: {tokens} tokens > {self.window} maximum"
            error = {"type": "invalid_request_error", "message": words}
            await exchange.reply(400, json.dumps({"type": "error", "error": error}).encode())
            return
        block = self._block(body, prompt, tokens)
        if body.get("stream"):
            await _stream(exchange, body, block, tokens)
        else:
            await exchange.reply(200, json.dumps(_message(body, block, tokens)).encode())

    def _block(self, body: dict[str, Any], prompt: str, tokens: int) -> dict[str, Any]:
        """What the model says: the next call, or a text."""
        task = _TASK.search(prompt)
        names = {tool.get("name") for tool in body.get("tools") or ()}
        if task is None or "Read" not in names:
            self.asides += 1
            return {"type": "text", "text": '{"title": "A book"}'}
        self.tokens.append(tokens)
        done = max(map(int, _READ.findall(prompt)), default=0)
        if done >= int(task[1]):
            return {"type": "text", "text": f"I have read all {done} parts."}
        self.read.append(done + 1)
        path = f"{task[2]}/part-{done + 1}.txt"
        name = f"toolu_{len(self.read):06d}"
        return {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": path}}


def _message(body: dict[str, Any], block: dict[str, Any], tokens: int) -> dict[str, Any]:
    return {
        # Claude Code takes replies of one id for pieces of one message.
        "id": f"msg_{next(_NUMBER):06d}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 20},
    }


async def _stream(
    exchange: Exchange, body: dict[str, Any], block: dict[str, Any], tokens: int
) -> None:
    await exchange.start(200, kind="text/event-stream")
    whole = _message(body, block, tokens)
    is_call = block["type"] == "tool_use"
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if is_call
        else {"type": "text_delta", "text": block["text"]}
    )
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    for event in (
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {**block, "input": {}} if is_call else {"type": "text", "text": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ):
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        await exchange.write(data.encode())
    await exchange.end()
