"""Which upstream keeps the reply of which call."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from django.db import Error as DatabaseFault

from helmdash.core.calls.capture import Capture
from helmdash.doors.faults import DatabaseUnavailable
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.recording.later_replies import LaterReply, complete_call
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls.kept_replies import Keeper, find_keeper, is_only_project

Answer = TypeVar("Answer")

# Of this process, for as long as their calls may wait to be stored.
_MOST_RECENT = 10_000
_PATIENCE_S = 3.0
# A call of another process may have ended just now: it is stored within that time.
_STORED_WITHIN_S = 0.3


class ReplyKeepers:
    """Which upstream keeps which reply; one for each gateway, used on its event loop."""

    def __init__(self) -> None:
        self._recent: OrderedDict[tuple[int, str], Keeper] = OrderedDict()
        # A thread of its own: the connection of a thread that others use may be on another file.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gateway-replies")

    def close(self) -> None:
        """End the thread; whatever waits is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def note(self, project_id: int, capture: Capture) -> None:
        """Keep in mind where the reply of a call lies that has just ended."""
        if capture.kept_reply_id is None or capture.provider is None:
            return
        keeper = Keeper(capture.provider, bool(capture.is_kept_by_own))
        self._recent[project_id, capture.kept_reply_id] = keeper
        while len(self._recent) > _MOST_RECENT:
            self._recent.popitem(last=False)

    async def find(self, project_id: int, reply_id: str) -> Keeper | None:
        """Who keeps the reply; None: the project has made no such one. Raises
        DatabaseUnavailable."""
        known = self._recent.get((project_id, reply_id))
        if known is not None:
            return known
        found = await self._stored(project_id, reply_id)
        if found is None:
            await asyncio.sleep(_STORED_WITHIN_S)
            found = await self._stored(project_id, reply_id)
        return found

    async def complete(
        self, project: ProjectInfo, reply_id: str, reply: LaterReply, *, is_own: bool
    ) -> None:
        """Add how a reply ended to the call that made it, where that was not known. is_own: as of
        its keeper. Raises DatabaseUnavailable."""
        now = datetime.now(UTC)
        asked = partial(complete_call, project=project, reply_id=reply_id, is_own=is_own)
        await self._asked(partial(asked, reply=reply, now=now))

    async def is_only_project(self) -> bool:
        """Whether all that upstreams keep is one project's. Raises DatabaseUnavailable."""
        return await self._asked(is_only_project)

    async def _stored(self, project_id: int, reply_id: str) -> Keeper | None:
        return await self._asked(partial(find_keeper, project_id=project_id, reply_id=reply_id))

    async def _asked(self, question: Callable[[], Answer]) -> Answer:
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._thread, partial(_ask, question))
        try:
            return await asyncio.wait_for(asked, _PATIENCE_S)
        except (TimeoutError, DatabaseFault):
            raise DatabaseUnavailable from None


def _ask(question: Callable[[], Answer]) -> Answer:
    with thread_connection():
        return question()
