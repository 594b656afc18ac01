"""The types of an ASGI application, and what every reader of a scope needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

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
