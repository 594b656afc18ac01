"""Room on the interpreter's stack, so that a call costs what a call costs.

CPython keeps the frames of Python functions in pieces of 16 KiB, some eighty frames each. A call
that does not fit any more asks the system for another piece, and its return gives it back: a map, a
page of noughts and an unmap, a hundred times what a call takes. Whatever calls in a loop at just
that depth pays it each time. Below pytest's, Django's and a template's frames that is somewhere in
every test: 296,000 pieces in tests/access and two more files, a tenth of their CPU time.

A piece is made twice as large as the frame that asks for it, so one huge frame brings the room for
all that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Of 8 bytes each. As much again is left for the frames above: more than a thousand.
_SLOTS = 32_768


def with_room(call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """What the call gives; the frames of all that it calls lie in one piece."""
    return call(*args, **kwargs)


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)


class RunWithRoom:
    """A plugin of pytest's that runs all tests so: in a worker, or without workers."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """What the loop that would run without this one gives."""
        manager = session.config.pluginmanager
        loop = manager.subset_hook_caller("pytest_runtestloop", [self])
        return with_room(loop, session=session)
