"""Waiting on an event loop for what another thread, or the loop itself, promises."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any


async def is_done(promise: Future[Any], *, within: float) -> bool:
    """Whether a promise is kept, broken or withdrawn within so many seconds.

    What asyncio makes of such a promise is told by a message to its loop even where the loop keeps
    the promise itself, as for a lone report (recorder.loop_reports): it comes a round later.
    """
    loop, own_thread = asyncio.get_running_loop(), threading.get_ident()
    is_over: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not is_over.done():
            is_over.set_result(None)

    def tell(_: Future[Any]) -> None:
        if threading.get_ident() == own_thread:
            end()
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end)

    promise.add_done_callback(tell)
    timer = loop.call_later(within, end)
    try:
        await is_over
    finally:
        timer.cancel()
    return promise.done()
