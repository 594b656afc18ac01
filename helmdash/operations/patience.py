"""Asking the database with little patience: for those who must answer also while it is away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from typing import TypeVar

from django.db import OperationalError, connection, connections

T = TypeVar("T")

PATIENCE_SECONDS = 1.0
# Threads that wait for a silent database; each ends when the pool or the network gives up.
_MOST_WAITING = 4
_room = threading.BoundedSemaphore(_MOST_WAITING)


class DatabaseSilent(OperationalError):
    """The database did not answer in time."""

    def __init__(self) -> None:
        super().__init__("the database does not answer")


def ask_briefly(question: Callable[[], T], *, seconds: float = PATIENCE_SECONDS) -> T:
    """What the question gives or raises; DatabaseSilent when that takes more than `seconds`.

    The question runs in a thread and on a connection of its own, and may go on there afterwards.
    Inside a transaction, which no other connection sees into, and on SQLite, where a file that is
    away is an error at once, it runs here.
    """
    if connection.vendor == "sqlite" or connection.in_atomic_block:
        return question()
    if not _room.acquire(blocking=False):
        raise DatabaseSilent
    answer: Future[T] = Future()
    # A daemon, so that a server that stops does not wait for a host that never answers.
    threading.Thread(target=_ask, args=(question, answer), name="ask-briefly", daemon=True).start()
    try:
        return answer.result(seconds)
    except WaitedTooLong:
        # Also what the question itself raises; that it was not in time is true all the same.
        raise DatabaseSilent from None


def _ask(question: Callable[[], T], answer: Future[T]) -> None:
    try:
        try:
            found = question()
        finally:
            connections.close_all()
    except BaseException as error:
        answer.set_exception(error)
    else:
        answer.set_result(found)
    finally:
        _room.release()
