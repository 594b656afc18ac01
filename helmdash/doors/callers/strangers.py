"""Requests of people nobody knows, a few at a time: each costs a thread of Django's.

Python's threads share one core, and whoever waits for it takes its chance: five hundred of them
left the gateway a fiftieth of what it does alone. Two at once are answered as quickly, one after
the other, and a client with a good key hardly notices. A place is given back when the answer
begins, so that nobody holds one by not reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from django.conf import settings

from helmdash.doors.asgi import App, Message, Receive, Scope, Send, connection_of
from helmdash.doors.callers.sessions import Sessions
from helmdash.doors.faults import SessionsUnavailable
from helmdash.doors.patience import LIVENESS

# A second, so that one which waits for the database does not hold up all others.
_AT_ONCE = 2
# So many of people with a cookie of a session are let through unasked; with more under way, it is
# looked up whether there is such a session.
_UNASKED = 8
# Where the database does not say so soon, whoever answers is told of that, too, and sooner.
_PATIENCE_S = 0.5
# Where an identity provider is asked meanwhile, whose time is its own: in places of their own, more
# than can wait for it at once (upstream.services.oidc), so that the others are told so.
_ASK_ELSEWHERE = frozenset({"/login/oidc/", "/login/oidc/done/"})
_ELSEWHERE_AT_ONCE = 8
_COOKIE = settings.SESSION_COOKIE_NAME.encode() + b"="


class Strangers:
    """Who waits for a place; one for each process, used on one event loop."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._places = asyncio.Semaphore(_AT_ONCE)
        # Whoever asks whether the server lives does not wait for all others.
        self._liveness = asyncio.Semaphore(_AT_ONCE)
        self._elsewhere = asyncio.Semaphore(_ELSEWHERE_AT_ONCE)
        self._with_cookie = 0

    async def run(
        self, app: App, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """Have the application answer somebody without a key; people who are signed in at once.

        Raises what the application raises.
        """
        if _COOKIE not in headers.get(b"cookie", b""):
            await self._in_turn(app, scope, receive, send)
            return
        self._with_cookie += 1
        try:
            if self._with_cookie <= _UNASKED or await self._is_signed_in(headers):
                await app(scope, receive, send)
                return
        finally:
            self._with_cookie -= 1
        await self._in_turn(app, scope, receive, send)

    def _places_for(self, path: str) -> asyncio.Semaphore:
        if path in LIVENESS:
            return self._liveness
        return self._elsewhere if path in _ASK_ELSEWHERE else self._places

    async def _is_signed_in(self, headers: Mapping[bytes, bytes]) -> bool:
        try:
            found = await asyncio.wait_for(self._sessions.find_user(headers), _PATIENCE_S)
        except (SessionsUnavailable, TimeoutError):
            return False
        return found is not None

    async def _in_turn(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        places = self._places_for(scope["path"])
        left = _Left(scope)
        await places.acquire()
        is_held = True

        def let_go() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                places.release()

        async def begin(message: Message) -> None:
            let_go()
            await send(message)

        try:
            if not left.is_gone():
                await app(scope, receive, begin)
        finally:
            let_go()


class _Left:
    """Whether a client has left while its request waited."""

    def __init__(self, scope: Scope) -> None:
        self._is_gone = False
        self._connection = connection_of(scope)
        if self._connection is not None:
            self._connection.when_left(self._note)

    def _note(self) -> None:
        self._is_gone = True

    def is_gone(self) -> bool:
        """Its last answer: nothing is heard of the client any more."""
        if self._connection is not None:
            self._connection.when_left(None)
        return self._is_gone
