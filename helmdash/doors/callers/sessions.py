"""Whether somebody who is signed in to the pages sends a request, told by its headers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError
from django.http import HttpRequest, parse_cookie

from helmdash.core.access.permissions import readable
from helmdash.doors.faults import SessionsUnavailable
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.queries.access.access import person_of

# Forms are rare; two so that one that waits for a lost connection does not hold up the other.
_THREADS = 2
# A session cookie is 32 characters; anything much longer is none, and not worth a query.
_MAX_COOKIE_CHARS = 128
_PATIENCE_S = 5.0


class Sessions:
    """Looks sessions up, one for each process. Used on one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sessions")

    def close(self) -> None:
        """End the threads; whatever waits is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def find_user(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The id of the user whose valid session the cookie names; None for everybody else.

        Raises SessionsUnavailable while the database is unavailable.
        """
        return await self._ask(headers, _user_of)

    async def find_reader(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The same, None also for who may read no project. Raises the same."""
        return await self._ask(headers, _reader_of)

    async def _ask(
        self, headers: Mapping[bytes, bytes], question: Callable[[str], str | None]
    ) -> str | None:
        cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
        key = cookies.get(settings.SESSION_COOKIE_NAME, "")
        if not 0 < len(key) <= _MAX_COOKIE_CHARS:
            return None
        loop = asyncio.get_running_loop()
        try:
            work = loop.run_in_executor(self._threads, question, key)
            return await asyncio.wait_for(work, _PATIENCE_S)
        except (DatabaseError, TimeoutError):
            raise SessionsUnavailable from None


def _user_of(session_key: str) -> str | None:
    with thread_connection():
        user = _who(session_key)
        return str(user.pk) if user.is_authenticated else None


def _reader_of(session_key: str) -> str | None:
    with thread_connection():
        user = _who(session_key)
        if not user.is_authenticated or readable(person_of(user)) == frozenset():
            return None
        return str(user.pk)


def _who(session_key: str) -> AbstractBaseUser | AnonymousUser:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return get_user(request)
