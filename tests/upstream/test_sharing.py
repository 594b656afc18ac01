"""Work in the background: it is kept, its faults are logged, and it ends with the server."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from helmdash.upstream.listings import Listings
from helmdash.upstream.sharing import SHARED_KEY, Shared, Stopping, shared_of
from tests.upstream.servers import calling, run

CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


async def _noted(log: list[str], *, seconds: float = 0, word: str = "done") -> None:
    try:
        await asyncio.sleep(seconds)
        log.append(word)
    except asyncio.CancelledError:
        log.append("cancelled")
        raise


def with_shared(
    scene: Any, *, around: Any = None, seconds: float = 1.0
) -> Coroutine[Any, Any, Shared]:
    """A scene with a Shared that is stopped after it."""

    async def whole() -> Shared:
        async with calling() as client:
            options = {"around": around} if around else {}
            shared = Shared(client, Listings(client), **options)
            await scene(shared)
            await shared.stop(seconds)
            await shared.aclose()
            return shared

    return whole()


def test_work_goes_on_without_anybody_holding_it() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        shared.spawn(_noted(log, seconds=0.02))
        gc.collect()
        assert (log, shared.busy) == ([], 1)

    shared = run(with_shared(scene))

    assert (log, shared.busy) == (["done"], 0)


def test_a_fault_is_logged_and_hurts_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def fail() -> None:
        raise RuntimeError("the plan fell over")

    async def scene(shared: Shared) -> None:
        shared.spawn(fail())
        shared.spawn(_noted(log, seconds=0.01))

    with caplog.at_level(logging.ERROR):
        run(with_shared(scene))

    assert log == ["done"]
    assert "the plan fell over" in caplog.text


def test_work_may_be_handed_in_by_a_thread() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        await asyncio.to_thread(lambda: shared.spawn(_noted(log)))

    run(with_shared(scene))

    assert log == ["done"]


def test_work_may_be_handed_in_from_another_loop() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        async def there() -> None:
            shared.spawn(_noted(log))

        await asyncio.to_thread(lambda: asyncio.run(there()))

    run(with_shared(scene))

    assert log == ["done"]


def test_what_takes_too_long_is_cancelled_and_may_say_so() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        shared.spawn(_noted(log, seconds=60))
        shared.spawn(_noted(log, seconds=0.01))

    run(with_shared(scene, seconds=0.1))

    assert log == ["done", "cancelled"]


def test_work_that_comes_when_the_server_stops_is_refused() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        await shared.stop(0)
        with pytest.raises(Stopping, match="Ask again"):
            shared.spawn(_noted(log))

    run(with_shared(scene))

    assert log == []


def test_work_that_a_thread_hands_in_at_the_last_moment_is_told_that_it_is_cancelled() -> None:
    log: list[str] = []

    async def scene(shared: Shared) -> None:
        # The thread sees that the server runs; the loop comes to it when it no longer does.
        thread = asyncio.to_thread(lambda: shared.spawn(_noted(log, seconds=60)))
        handed_in = asyncio.ensure_future(thread)
        while not handed_in.done():
            await asyncio.sleep(0)
        await shared.stop(0)

    run(with_shared(scene, seconds=0))

    assert log == ["cancelled"]


def test_work_does_not_see_the_request_that_began_it() -> None:
    seen: list[str] = []

    async def look() -> None:
        seen.append(CALLER.get())

    async def scene(shared: Shared) -> None:
        CALLER.set("a request")
        shared.spawn(look())

    run(with_shared(scene))

    assert seen == ["nobody"]


def test_work_runs_inside_what_the_house_puts_around_it() -> None:
    log: list[str] = []

    async def around(work: Awaitable[object]) -> None:
        log.append("before")
        try:
            await work
        finally:
            log.append("after")

    async def scene(shared: Shared) -> None:
        shared.spawn(_noted(log, seconds=60))
        await asyncio.sleep(0)

    run(with_shared(scene, around=around, seconds=0.05))

    assert log == ["before", "cancelled", "after"]


def test_it_is_found_behind_a_request_and_a_scope() -> None:
    async def scene(shared: Shared) -> None:
        scope = {"type": "http", SHARED_KEY: shared}
        assert shared_of(scope) is shared
        assert shared_of(SimpleNamespace(scope=scope)) is shared

    run(with_shared(scene))
    # a test's client and a command have none
    assert shared_of(SimpleNamespace()) is None
    assert shared_of({"type": "http"}) is None
    assert shared_of(None) is None
