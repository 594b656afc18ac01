"""Database work of a plan, from the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


async def in_thread(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Do it in the thread that the database belongs to, and let go of the connection.

    A model may take minutes to answer. A pool of ten connections must not be empty because ten
    plans are waiting. Inside a transaction the connection is the caller's and stays.
    """

    def work_and_let_go() -> Result:
        try:
            return work(*args, **kwargs)
        finally:
            if not connection.in_atomic_block:
                connection.close()

    return await sync_to_async(work_and_let_go, thread_sensitive=True)()
