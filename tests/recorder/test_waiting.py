"""Waiting on an event loop for a promise that the loop itself or another thread keeps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest

from helmdash.operations.recorder.waiting import is_done

Promise = Future[int]
LONG, SHORT = 20.0, 0.01


def keep(promise: Promise) -> None:
    promise.set_result(1)


def break_off(promise: Promise) -> None:
    promise.set_exception(ValueError("broken"))


def withdraw(promise: Promise) -> None:
    promise.cancel()


def now(promise: Promise, end: Callable[[Promise], None]) -> None:
    end(promise)


def on_the_loop(promise: Promise, end: Callable[[Promise], None]) -> None:
    asyncio.get_running_loop().call_soon(end, promise)


def by_a_thread(promise: Promise, end: Callable[[Promise], None]) -> None:
    threading.Timer(SHORT, end, [promise]).start()


@pytest.mark.parametrize("when", [now, on_the_loop, by_a_thread])
@pytest.mark.parametrize("end", [keep, break_off, withdraw])
def test_it_is_told_of_every_end(
    when: Callable[[Promise, Callable[[Promise], None]], None], end: Callable[[Promise], None]
) -> None:
    async def wait() -> bool:
        promise: Promise = Future()
        when(promise, end)
        return await is_done(promise, within=LONG)

    assert asyncio.run(wait())


def test_it_waits_no_longer_than_it_is_told() -> None:
    async def wait() -> tuple[bool, bool]:
        promise: Promise = Future()
        in_time = await is_done(promise, within=SHORT)
        asyncio.get_running_loop().call_later(SHORT, partial(keep, promise))
        return in_time, await is_done(promise, within=LONG)

    assert asyncio.run(wait()) == (False, True)


def test_a_promise_may_be_kept_when_nobody_waits_any_more() -> None:
    promise: Promise = Future()

    async def wait() -> None:
        waiting = asyncio.create_task(is_done(promise, within=LONG))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(wait())
    promise.set_result(1)  # its loop has ended

    assert promise.result() == 1
