"""A page's calls are as cheap at one depth as at another."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from helmdash.doors.room import RoomMiddleware

# Frames of Django, a page, its template and the database, and more.
_DEPTH = 300
_CALLS = 50


def test_no_depth_below_the_outermost_middleware_asks_for_memory_at_each_call() -> None:
    assert import_string(settings.MIDDLEWARE[0]) is RoomMiddleware
    costs: list[int] = []

    def view(_: HttpRequest) -> HttpResponse:
        costs.append(_dearest_depth())
        return HttpResponse()

    outermost = RoomMiddleware(view)
    _in_a_thread(lambda: outermost(HttpRequest()))
    costs.append(cast("int", _in_a_thread(_dearest_depth)))

    assert costs[0] < _CALLS
    # Without room there is such a depth: this test would see it. Python 3.14 keeps a piece of the
    # stack for the next call, from one of its bug fix releases on.
    assert costs[1] >= _CALLS or sys.version_info >= (3, 14)


def _in_a_thread(work: Callable[[], object]) -> object:
    """In a thread of its own, as a request is worked on: its stack has nothing from before."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def _dearest_depth() -> int:
    """The most pages of memory that the system gives for some calls, at any depth."""
    # Once before: what is touched for the first time is asked for.
    _pages_of_calls(_DEPTH)
    return max(_pages_of_calls(depth) for depth in range(_DEPTH))


def _pages_of_calls(depth: int) -> int:
    """How many pages of memory the system gave this thread for some calls, so many frames down."""
    if depth:
        return _pages_of_calls(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(_CALLS):
        _nothing()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def _nothing() -> None:
    """Takes a frame, a larger one than what calls it: at some depth it is what does not fit."""


_nothing.__code__ = _nothing.__code__.replace(co_stacksize=64)
