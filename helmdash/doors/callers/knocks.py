"""Clients that were turned away at the door: counted in memory, stored now and then.

Anybody can knock, so everything is bounded: what is held here, what is kept, and how often the
database is asked.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from helmdash.core.access.wrong_addresses import Dialect, KnockReason, printable
from helmdash.core.conversations.clients import client_of
from helmdash.metrics import unknown_addresses
from helmdash.operations.access import wrong_addresses
from helmdash.operations.access.wrong_addresses import MOST_ROWS, Knocked
from helmdash.operations.database.sqlite_file import thread_connection

log = logging.getLogger(__name__)

_METHOD_CHARS = 16
_CLIENT_CHARS = 64
_ADVICE_CHARS = 400
# How long a count may stand in memory only; a crash loses it.
_FLUSH_SECONDS = 5.0

Key = tuple[str, str, str]


class Knocks:
    """Those of one process. Used on one event loop."""

    def __init__(self, *, flush_seconds: float = _FLUSH_SECONDS) -> None:
        self._flush_seconds = flush_seconds
        self._held: dict[Key, Knocked] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="knocks")
        self._timer: asyncio.TimerHandle | None = None
        self._storing: asyncio.Future[None] | None = None

    def note(
        self,
        *,
        method: str,
        path: str,
        user_agent: str,
        dialect: Dialect,
        advice: str,
        now: datetime,
    ) -> None:
        """Count one request for an address that is not there; it is stored with the others,
        later."""
        unknown_addresses.labels(dialect.value).inc()
        self._hold(
            KnockReason.ADDRESS,
            method=method,
            path=path,
            user_agent=user_agent,
            advice=advice,
            now=now,
        )

    def note_key(
        self, *, method: str, path: str, user_agent: str, advice: str, now: datetime
    ) -> None:
        """Count one request at a right address whose key was refused; likewise stored later."""
        self._hold(
            KnockReason.KEY, method=method, path=path, user_agent=user_agent, advice=advice, now=now
        )

    def _hold(
        self,
        reason: KnockReason,
        *,
        method: str,
        path: str,
        user_agent: str,
        advice: str,
        now: datetime,
    ) -> None:
        key = (printable(method)[:_METHOD_CHARS], printable(path), _client(user_agent))
        held = self._held.pop(key, None)
        if held is None and len(self._held) >= MOST_ROWS:
            # The one that has been silent the longest.
            del self._held[next(iter(self._held))]
        self._held[key] = (
            replace(held, count=held.count + 1, latest_at=now, reason=reason.value)
            if held
            else Knocked(
                method=key[0],
                path=key[1],
                client=key[2],
                advice=advice[:_ADVICE_CHARS],
                count=1,
                first_at=now,
                latest_at=now,
                reason=reason.value,
            )
        )
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._flush_seconds, self._flush)

    async def close(self) -> None:
        """Store what is held, and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        if self._storing is not None:
            await asyncio.wait({self._storing}, timeout=2.0)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _flush(self) -> None:
        self._timer = None
        found, self._held = tuple(self._held.values()), {}
        if found:
            loop = asyncio.get_running_loop()
            self._storing = loop.run_in_executor(self._thread, _store, found)


def _store(found: tuple[Knocked, ...]) -> None:
    try:
        with thread_connection():
            wrong_addresses.store(knocks=found)
    except Exception:
        # A count on a page is worth nobody's wait, and no second try.
        log.debug("requests for unknown addresses could not be stored", exc_info=True)


def _client(user_agent: str) -> str:
    client = client_of(user_agent)
    if client is None:
        return ""
    return printable(f"{client.name} {client.version}".strip())[:_CLIENT_CHARS]
