"""The export under a real ASGI server, and what happens when a client leaves it early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import cast

import httpx
import orjson
from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse

from helmdash.doors.streaming import stream
from tests.support.server import Served


def _asgi_request() -> ASGIRequest:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    return ASGIRequest(scope, None)  # type: ignore[arg-type]  # it has no body to read


def _pieces(response: StreamingHttpResponse) -> AsyncIterator[bytes]:
    return cast("AsyncIterator[bytes]", response.streaming_content)


def test_a_client_that_leaves_closes_the_source() -> None:
    closed: list[bool] = []

    def lines() -> Iterator[bytes]:
        try:
            for _ in range(10_000):
                yield b"line\n"
        finally:
            closed.append(True)

    async def leave_early() -> bytes:
        pieces = _pieces(stream(_asgi_request(), lines(), content_type="text/plain"))
        first = await anext(pieces)
        await pieces.aclose()  # type: ignore[attr-defined]  # it is a generator
        return first

    first = asyncio.run(leave_early())

    assert first == b"line\n" * 200
    assert closed == [True]


def test_an_export_is_whole_under_asgi() -> None:
    async def read() -> bytes:
        lines = (b"%d\n" % n for n in range(450))
        response = stream(_asgi_request(), lines, content_type="text/plain")
        return b"".join([piece async for piece in _pieces(response)])

    assert asyncio.run(read()) == b"".join(b"%d\n" % n for n in range(450))


def test_a_server_records_and_exports(served: Served) -> None:
    calls = [{"id": f"export-{n}", "model": "m", "pack": "export-test"} for n in range(450)]

    with httpx.Client(base_url=f"{served.base_url}/api/v1", headers=served.headers) as client:
        told = client.post("/calls/batch", json={"calls": calls}).json()
        text = client.get("/calls/export", params={"pack": "export-test"}).text

    assert told["stored"] == 450
    assert {orjson.loads(line)["id"] for line in text.splitlines()} == {c["id"] for c in calls}


def test_a_body_without_a_length_is_limited_too(served: Served) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 65_536

    headers = {**served.headers, "Content-Type": "application/json"}
    response = httpx.post(f"{served.base_url}/api/v1/calls", content=endless(), headers=headers)

    assert response.status_code == 413
    assert response.headers["Content-Type"] == "application/problem+json"
