"""The recording floor of a gateway: passes on as the lower floor does, and stores each call.

A row for each call with its texts, in groups and by a thread of its own, as bench.floors.recording
has them; the client does not wait for it. BENCH_DATABASE is where the file goes.
"""

from __future__ import annotations

import itertools
from typing import Any

import orjson

from bench.floors import with_aiohttp
from bench.floors.passing import Receive, Scope, Send
from bench.floors.recording import store

_numbers = itertools.count(1)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request with what the upstream answers, and keep both."""
    asked: list[bytes] = []
    answered: list[bytes] = []

    async def hear() -> Any:
        message = await receive()
        asked.append(message.get("body", b""))
        return message

    async def tell(message: Any) -> None:
        answered.append(message.get("body", b""))
        await send(message)

    await with_aiohttp.app(scope, hear, tell)
    if scope["method"] == "POST":
        store([_call(b"".join(asked), b"".join(answered))])


def _call(asked: bytes, answered: bytes) -> dict[str, Any]:
    request = orjson.loads(asked)
    is_stream = request.get("stream", False)
    reply: dict[str, Any] = {} if is_stream else orjson.loads(answered)
    usage = reply.get("usage") or {"prompt_tokens": 0, "completion_tokens": 0}
    return {
        "id": f"call-{next(_numbers)}",
        "conversation": "bench",
        "model": request["model"],
        "usage": usage,
        "finish_reason": "stop",
        "messages": request["messages"],
        "content": answered.decode() if is_stream else reply["choices"][0]["message"]["content"],
    }
