"""What clients of Django hear when the server stops in the middle of their request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from helmdash.api.stopping import ShutdownMiddleware
from helmdash.doors.asgi import Message, Receive, Scope, Send

START = {"type": "http.response.start", "status": 200, "headers": []}
BODY = {"type": "http.response.body", "body": b"late"}


class Request:
    """One request to an application that goes on once `go_on` is set."""

    def __init__(self, *, begins_early: bool = False) -> None:
        self.sent: list[Message] = []
        self.go_on = asyncio.Event()
        self.is_waiting = asyncio.Event()
        self.ended = asyncio.Event()
        self._begins_early = begins_early

    def start(self) -> asyncio.Task[None]:
        app = ShutdownMiddleware(self._answer)
        scope = {"type": "http", "path": "/api/v1/plan"}
        return asyncio.create_task(app(scope, _nothing, self._send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._begins_early:
            await send(START)
        self.is_waiting.set()
        try:
            await self.go_on.wait()
            if not self._begins_early:
                await send(START)
            await send(BODY)
        finally:
            self.ended.set()

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _run(story: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(story(), 5))


def test_a_request_that_ends_is_as_it_was() -> None:
    async def story() -> None:
        request = Request()
        request.go_on.set()
        await request.start()
        assert request.sent == [START, BODY]

    _run(story)


def test_a_client_is_told_and_its_work_comes_to_its_end_unheard() -> None:
    async def story() -> None:
        request = Request()
        task = request.start()
        await request.is_waiting.wait()

        task.cancel()
        await task

        head, body = request.sent
        assert head["status"] == 503
        assert (b"content-type", b"application/problem+json") in head["headers"]
        assert (b"retry-after", b"5") in head["headers"]
        assert json.loads(body["body"])["code"] == "unavailable"
        assert not request.ended.is_set()
        request.go_on.set()
        await request.ended.wait()
        assert len(request.sent) == 2

    _run(story)


def test_an_answer_that_has_begun_is_broken_off() -> None:
    async def story() -> None:
        request = Request(begins_early=True)
        task = request.start()
        await request.is_waiting.wait()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        await request.ended.wait()
        assert request.sent == [START]

    _run(story)


def test_what_an_application_raises_comes_through() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("broken")

    async def story() -> None:
        with pytest.raises(ValueError, match="broken"):
            await ShutdownMiddleware(broken)({"type": "http"}, _nothing, _nothing)  # type: ignore[arg-type]

    _run(story)
