"""The watch on a client that may leave."""

from __future__ import annotations

import asyncio
import gc
import weakref

from helmdash.gateway.forwarding.watching import ClientWatch


def test_a_watch_that_was_stopped_is_gone_without_a_collection_of_garbage() -> None:
    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError

    async def watch_one_call() -> weakref.ref[ClientWatch]:
        watch = ClientWatch(receive)
        await asyncio.sleep(0)
        watch.stop()
        watch.stop()
        return weakref.ref(watch)

    async def run() -> ClientWatch | None:
        seen = await asyncio.create_task(watch_one_call())
        # The cancelled task ends, then what waited for it does.
        for _ in range(3):
            await asyncio.sleep(0)
        return seen()

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(run()) is None
    finally:
        gc.enable()
