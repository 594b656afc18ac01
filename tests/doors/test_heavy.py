"""Large requests that cannot be taken: each face says so in its own words, and what then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from helmdash.doors.faults import Fault
from helmdash.doors.heavy import is_handed_on
from helmdash.doors.problems import problem_of_fault
from helmdash.gateway import refusals as gateway
from helmdash.heavy import FORWARDER_KEY, NoWorker, TooManyWaiting, WorkerForwarder
from helmdash.mcp import refusals as mcp

LARGE = b"x" * (2 * 1024 * 1024)


class Refusing(WorkerForwarder):
    def __init__(self, error: Exception) -> None:
        super().__init__("no:where")
        self.error = error

    async def forward(self, scope: Any, body: bytes, receive: Any, send: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TooManyWaiting(is_own=True), 429),
        (TooManyWaiting(is_own=False), 503),
        (NoWorker(), 503),
    ],
)
def test_a_large_request_without_room_is_told_when_to_come_back(
    error: Exception, status: int
) -> None:
    async def hand_on() -> None:
        scope = {FORWARDER_KEY: Refusing(error)}
        await is_handed_on(scope, LARGE, None, None)  # type: ignore[arg-type]

    with pytest.raises(Fault) as told:
        asyncio.run(hand_on())

    problem = problem_of_fault(told.value)
    assert problem.headers["Retry-After"]
    assert problem.detail == str(error)
    refused = gateway.refusal_of(told.value).error
    assert (refused.status, bool(refused.retry_after_s)) == (status, True)
    assert mcp.refusal_of(told.value).status == status


def test_small_requests_and_those_of_the_worker_itself_are_not_handed_on() -> None:
    there = {FORWARDER_KEY: Refusing(NoWorker())}

    async def hand_on(scope: Any, body: bytes) -> bool:
        return await is_handed_on(scope, body, None, None)  # type: ignore[arg-type]

    assert not asyncio.run(hand_on(there, b"{}"))
    assert not asyncio.run(hand_on({FORWARDER_KEY: None}, LARGE))
    assert not asyncio.run(hand_on({}, LARGE))


@pytest.mark.parametrize(("path", "is_heavy"), [("/api/v1/decode", True), ("/api/v1/calls", False)])
def test_a_reply_to_be_decoded_is_weighed_by_what_stands_in_it(path: str, is_heavy: bool) -> None:
    scope = {FORWARDER_KEY: Refusing(NoWorker()), "path": path}
    body = b'{"raw": "%b"}' % (b"[" * 100_000)

    async def hand_on() -> bool:
        try:
            return await is_handed_on(scope, body, None, None)  # type: ignore[arg-type]
        except Fault:
            return True

    assert asyncio.run(hand_on()) is is_heavy
