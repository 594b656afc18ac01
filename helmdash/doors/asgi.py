"""The types of an ASGI application, and what every reader of a scope needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol, cast

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


# How a connection is told that somebody with a good key is at its other end: a function in its
# requests' scopes, where helmdash.doors.http.protocol serves them.
KNOWN_KEY = "helmdash.known"
# Likewise, for an answer without an end.
ENDLESS_KEY = "helmdash.endless"
# Likewise, its Connection: there where helmdash.doors.http.protocol serves the request.
CONNECTION_KEY = "helmdash.connection"
# What was wrong with a form that was not read, in its request's scope: a doors.faults.Fault.
FAULT_KEY = "helmdash.fault"


class Connection(Protocol):
    """What a connection does at once for a request that is being answered, where ASGI would have
    messages, and a task that waits for them."""

    def whole_body(self) -> bytes | None:
        """Take the body, where all of it is here; None: it is to be waited for, by `receive`."""

    def answer_whole(
        self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> bool:
        """Write a whole answer in one piece; False: nothing was written, and `send` has to do it.

        `headers` have names in small letters, content-length among them. Raises RuntimeError for
        bytes that no header may hold.
        """

    def write_piece(self, data: bytes) -> bool:
        """Write a piece of an answer that has begun and goes on after it; False: as above."""

    def break_off(self) -> bool:
        """Close within an answer that comes in pieces, so that its client sees that its end is
        missing; what was written goes out. False: nothing was done, for none is under way."""

    def when_left(self, tell: Callable[[], None] | None) -> None:
        """Call this, once, when the client hangs up before it is answered; None: no longer."""


class Disconnected(Exception):
    """The client left before its request was read: there is nobody to answer."""


def note_known(scope: Scope) -> None:
    """Tell the connection that it is no stranger's: those have fewer."""
    tell = scope.get(KNOWN_KEY)
    if tell is not None:
        tell()


def note_endless(scope: Scope) -> None:
    """Tell the connection that its answer has no end: a server that stops does not wait for it."""
    tell = scope.get(ENDLESS_KEY)
    if tell is not None:
        tell()


def connection_of(scope: Scope) -> Connection | None:
    """The connection that a request came by; None behind any other server."""
    return cast("Connection | None", scope.get(CONNECTION_KEY))


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers by lower-case name; of repeated ones the first."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, value)
    return headers


def replay(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body in one piece, and then what else comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message
