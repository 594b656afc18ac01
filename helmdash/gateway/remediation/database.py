"""Asking the database for the next step, in threads, and with little patience."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from django.db import Error as DatabaseFault

from helmdash.operations.database.sqlite_file import commit_without_waiting, thread_connection

log = logging.getLogger(__name__)

T = TypeVar("T")

# How long a call waits for the database before it goes on without remediation, and how long nobody
# waits after that.
_PATIENCE_S = 3.0
_AWAY_S = 1.0
# Each has a connection of its own; SQLite lets one write at a time anyway.
_THREADS = 4


class StepUnavailable(Exception):
    """The database does not respond: the call goes on as the one before it did."""


class Database:
    """The threads that ask. Used on one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway-remediation")
        self._away_until = 0.0
        self._is_away = False

    @property
    def is_asked(self) -> bool:
        """False for a while after it did not respond."""
        return monotonic() >= self._away_until

    def close(self) -> None:
        """End the threads; whatever waits is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Callable[[], T]) -> T:
        """What the question gives or raises, StepUnavailable where the database has a fault."""
        if not self.is_asked:
            raise StepUnavailable
        asked = self._start(question)
        try:
            answer = await asyncio.wait_for(asyncio.shield(asked), _PATIENCE_S)
        except (TimeoutError, DatabaseFault) as fault:
            self._away_until = monotonic() + _AWAY_S
            if not self._is_away:
                self._is_away = True
                log.warning("calls go on without remediation: %s", type(fault).__name__)
            raise StepUnavailable from None
        if self._is_away:
            self._is_away = False
            log.warning("remediation goes on")
        return answer

    def later(self, work: Callable[[], object]) -> None:
        """Do what no client needs to wait for."""
        self._start(work)

    def _start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        started = loop.run_in_executor(self._threads, partial(_in_thread, work))
        started.add_done_callback(_look_at)
        return started


def _in_thread(question: Callable[[], T]) -> T:
    with thread_connection():
        commit_without_waiting()
        return question()


def _look_at(asked: asyncio.Future[Any]) -> None:
    """Nobody may wait for it any more."""
    if not asked.cancelled() and asked.exception() is not None:
        log.debug("remediation could not ask the database", exc_info=asked.exception())
