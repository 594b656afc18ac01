"""Room on the interpreter's stack, so that a call costs what a call costs.

CPython keeps the frames of Python functions in pieces of 16 KiB, some eighty frames each. A call
that does not fit any more asks the system for another piece, and its return gives it back: a map, a
page of noughts and an unmap, a hundred times what a call takes. Whatever calls in a loop at just
that depth pays it each time, and below Django's middleware a page is deep enough that something in
it always does.

A piece is made twice as large as the frame that asks for it, so one huge frame brings the room for
all that it calls. Memory is only taken as far as frames are put there (ADR 67).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Of 8 bytes each. As much again is left for the frames above: more than a thousand.
_SLOTS = 32_768


def with_room(call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """What the call gives; the frames of all that it calls lie in one piece."""
    return call(*args, **kwargs)


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)


class RoomMiddleware:
    """Outermost: the frames of a request, its page and its queries lie in one piece."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return with_room(self._get_response, request)
