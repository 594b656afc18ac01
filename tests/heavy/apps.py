"""A small application for a worker of the tests: it does what the path says."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from helmdash.heavy import end_turn
from helmdash.heavy.frames import FORWARDER_KEY, headers_out


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request, or live through the lifespan."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    body = (await receive())["body"]
    match scope["path"]:
        case "/echo":
            told = {
                "scope": {k: v for k, v in scope.items() if isinstance(v, str)},
                "query": scope["query_string"].decode(),
                "headers": headers_out(scope["headers"]),
                "forwards": scope[FORWARDER_KEY] is not None,
                "body": len(body),
                "pid": os.getpid(),
            }
            await _begin(send)
            await _say(send, json.dumps(told).encode(), last=True)
        case "/stream":
            await _begin(send)
            for number in range(3):
                await _say(send, b"%d" % number)
            await _say(send, b"", last=True)
        case "/wait":
            await _wait(json.loads(body), receive, send)
        case "/die":
            os._exit(3)
        case "/break":
            await _begin(send)
            await _say(send, b"half")
            os._exit(3)


async def _wait(asked: Any, receive: Any, send: Any) -> None:
    """Wait for the end, and note in a file what it was."""
    if asked.get("gives_turn_up"):
        end_turn()
    Path(asked["began"]).touch()
    try:
        left = await receive()
        Path(asked["file"]).write_text(left["type"])
    except asyncio.CancelledError:
        Path(asked["file"]).write_text("stopped")
        await _begin(send, 503)
        await _say(send, b"stopping", last=True)


async def _begin(send: Any, status: int = 200) -> None:
    headers = [(b"x-one", b"1"), (b"x-one", b"\xe4")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _say(send: Any, body: bytes, *, last: bool = False) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": not last})


async def _live(receive: Any, send: Any) -> None:
    for _ in range(2):
        message = await receive()
        await send({"type": message["type"] + ".complete"})
