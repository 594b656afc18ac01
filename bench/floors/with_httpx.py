"""The upper floor: raw ASGI, and httpx's client over the aiohttp transport that HelmDash uses."""

from __future__ import annotations

import httpx

from bench.floors.passing import HEADERS, UPSTREAM, Receive, Scope, Send, finish, read_body, start
from helmdash.upstream.transport import Transport

_client = httpx.AsyncClient(transport=Transport(allow_private=True), timeout=60)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request with what the upstream answers."""
    if scope["method"] == "GET":  # the bench asks whether it is up
        await start(send, 200, {})
        await finish(send)
        return
    body = await read_body(receive)
    async with _client.stream("POST", UPSTREAM, content=body, headers=HEADERS) as reply:
        await start(send, reply.status_code, reply.headers)
        if "content-length" in reply.headers:
            await finish(send, await reply.aread())
            return
        async for part in reply.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await finish(send)
