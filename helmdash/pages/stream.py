"""One stream for each tab that is looked at: a word when something has changed, a beat while
nothing does.

A tab asks for its parts anew only after such a word, and knows within seconds that the server is
away: the beats stop. It costs one look at a few indexes a second for all tabs of a process
together, and nothing where no tab is open. What is said is the same to everybody: that there is
news, not what, nor where.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.db import DatabaseError

from helmdash.doors.asgi import Receive, Scope, Send, headers_of, note_endless, note_known
from helmdash.doors.callers.sessions import Sessions
from helmdash.doors.faults import SessionsUnavailable
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.queries.news import news_mark

log = logging.getLogger(__name__)

LIVE_PATH: Final = "/live/"
# Three of them missed are noticed within the five seconds that a reader is promised.
_BEAT_S: Final = 1.5
_LOOK_S: Final = 1.0
# Then the browser asks again.
_LIFE_S: Final = 600.0
# Who has signed out meanwhile, or reads no project any more, hears nothing after so long at most:
# two small questions to the database for each tab.
_ASK_AGAIN_S: Final = 20.0
# A tab that is not looked at has none; far more than people look at one server.
_MOST_STREAMS: Final = 500
# Windows of one person that are looked at at once: more are forgotten ones, or no browser.
_MOST_OF_ONE: Final = 50
_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    # nginx would keep the beats until it has 4 kB of them.
    (b"x-accel-buffering", b"no"),
]
# Browsers wait 3 to 5 s of themselves: longer than a page believes in a server that says nothing.
_FIRST: Final = b"retry: 1000\n\n"
_BEAT: Final = b"event: beat\ndata:\n\n"
_NEWS: Final = b"data: news\n\n"


class Streams:
    """The ASGI application of the streams; looks for news while there is one. On one event loop."""

    def __init__(self, sessions: Sessions, look: Callable[[], object] = news_mark) -> None:
        self._sessions = sessions
        self._look = look
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="news")
        self._looking: asyncio.Task[None] | None = None
        # How often there was news, and what wakes those who wait for it.
        self._count = 0
        self._news = asyncio.Event()
        self._open: Counter[str] = Counter()

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 204, after which browsers ask no more, to who is not signed in or may
        read no project; 429 to who has more than their share open."""
        status, user = await self._status(scope)
        if status != 200:
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body"})
            return
        self._open[user] += 1
        note_known(scope)
        note_endless(scope)
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look_for_news())
            await self._tell(scope, user, gone, send)
        finally:
            self._open -= Counter((user,))
            gone.cancel()

    async def _status(self, scope: Scope) -> tuple[int, str]:
        """What to answer with, and to whom."""
        if scope["method"] != "GET":
            return 405, ""
        if self._open.total() >= _MOST_STREAMS:
            return 503, ""
        try:
            user = await self._sessions.find_reader(headers_of(scope))
        except SessionsUnavailable:
            return 503, ""
        if user is None:
            return 204, ""
        return (429 if self._open[user] >= _MOST_OF_ONE else 200), user

    async def _may_hear(self, scope: Scope, user: str) -> bool:
        """Whether who was let in would be again; also while nobody can be asked."""
        try:
            return await self._sessions.find_reader(headers_of(scope)) == user
        except SessionsUnavailable:
            return True

    async def _tell(self, scope: Scope, user: str, gone: asyncio.Future[None], send: Send) -> None:
        loop = asyncio.get_running_loop()
        ends, asks = loop.time() + _LIFE_S, loop.time() + _ASK_AGAIN_S
        # What changed while there was no stream is news to who comes back.
        told = -1
        await send({"type": "http.response.body", "body": _FIRST, "more_body": True})
        while not gone.done() and loop.time() < ends:
            if loop.time() >= asks:
                if not await self._may_hear(scope, user):
                    break
                asks = loop.time() + _ASK_AGAIN_S
            said, told = (_BEAT if told == self._count else _NEWS), self._count
            await send({"type": "http.response.body", "body": said, "more_body": True})
            if told == self._count:
                news = asyncio.ensure_future(self._news.wait())
                await asyncio.wait((gone, news), timeout=_BEAT_S, return_when="FIRST_COMPLETED")
                news.cancel()
        if not gone.done():
            await send({"type": "http.response.body"})

    async def _look_for_news(self) -> None:
        loop = asyncio.get_running_loop()
        mark: object = None
        while self._open:
            try:
                found = await loop.run_in_executor(self._thread, self._ask)
            except DatabaseError:
                # What is asked for meanwhile says so itself.
                log.debug("no look for news", exc_info=True)
            else:
                if mark is not None and found != mark:
                    self._count += 1
                    self._news.set()
                    self._news = asyncio.Event()
                mark = found
            await asyncio.sleep(_LOOK_S)

    def _ask(self) -> object:
        with thread_connection():
            return self._look()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
