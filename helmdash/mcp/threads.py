"""Database work off the event loop, in threads that keep or give back their connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, connection

from helmdash.operations.holding import FileWatch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Threads:
    """A few threads of its own, each with its own connection. Used on one event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._own = threading.local()

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Do it in a thread. Raises what it raises, and what the database raises when away."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._do, partial(work, *args, **kwargs))

    def close(self) -> None:
        """End the threads; what has begun ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _do(self, work: Callable[[], Result]) -> Result:
        try:
            self._check_connection()
            return work()
        except DatabaseError:
            # A connection that broke must not stay.
            connection.close()
            raise
        finally:
            if connection.vendor != "sqlite":
                # Back to the pool; a connection of SQLite costs more to open than to keep.
                connection.close()

    def _check_connection(self) -> None:
        """This thread keeps its connection, so it has to look whether it is still the right one."""
        watch: FileWatch | None = getattr(self._own, "watch", None)
        if watch is None:
            watch = self._own.watch = FileWatch()
        watch.check()
