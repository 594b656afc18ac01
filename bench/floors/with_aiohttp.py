"""The lower floor: raw ASGI, and aiohttp's client."""

from __future__ import annotations

import aiohttp

from bench.floors.passing import HEADERS, UPSTREAM, Receive, Scope, Send, finish, read_body, start

_sessions: list[aiohttp.ClientSession] = []


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request with what the upstream answers."""
    if scope["method"] == "GET":  # the bench asks whether it is up
        await start(send, 200, {})
        await finish(send)
        return
    body = await read_body(receive)
    async with _session().post(UPSTREAM, data=body, headers=HEADERS) as reply:
        await start(send, reply.status, reply.headers)
        if reply.content_length is not None:
            await finish(send, await reply.read())
            return
        async for part in reply.content.iter_any():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await finish(send)


def _session() -> aiohttp.ClientSession:
    """The one session, made inside the running loop."""
    if not _sessions:
        connector = aiohttp.TCPConnector(limit=0)
        _sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
    return _sessions[0]
