"""A test's calls are as cheap at one depth as at another."""

from __future__ import annotations

import resource

# Frames below a test that goes through a page, its template and the database, and more.
_DEPTH = 400
_CALLS = 50


def test_no_depth_of_a_test_asks_the_system_for_memory_at_each_call() -> None:
    # Once before: what is touched for the first time is asked for.
    _pages_of_calls(_DEPTH)

    assert max(_pages_of_calls(depth) for depth in range(_DEPTH)) < _CALLS


def _pages_of_calls(depth: int) -> int:
    """How many pages of memory the system gave for some calls, so many frames down."""
    if depth:
        return _pages_of_calls(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(_CALLS):
        _nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _nothing() -> None:
    """Takes a frame."""
