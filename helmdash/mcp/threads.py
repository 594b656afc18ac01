"""Database work off the event loop, in threads that keep or give back their connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from helmdash.operations.database.sqlite_file import thread_connection

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Threads:
    """A few threads of its own, each with its own connection. Used on one event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do it in a thread. Raises what it raises, and what the database raises when away."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, _do, partial(work, *args, **kwargs))

    def close(self) -> None:
        """End the threads; what has begun ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _do(work: Callable[[], Result]) -> Result:
    with thread_connection():
        return work()
