"""What the floors share: reading a request, and answering it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

UPSTREAM = os.environ.get("BENCH_UPSTREAM", "") + "/chat/completions"
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer bench"}


async def read_body(receive: Receive) -> bytes:
    """The whole body of a request."""
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    return body


async def start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send the status, and the headers that say what kind of body follows and how long it is."""
    kept = [
        (name.encode(), headers[name].encode())
        for name in ("content-type", "content-length")
        if name in headers
    ]
    await send({"type": "http.response.start", "status": status, "headers": kept})


async def finish(send: Send, body: bytes = b"") -> None:
    """Send what is left of the body, and its end."""
    await send({"type": "http.response.body", "body": body})
