"""Who is calling and what holds for them, at hand on the event loop.

The database is asked by a thread, and its answer holds for less than a second ("live everywhere
within a second"). While the database is unavailable, the last answer goes on holding, so that a
client never notices.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from django.db import DatabaseError
from django.utils import timezone

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.doors.faults import KeysUnavailable
from helmdash.operations.access import keys
from helmdash.operations.database.sqlite_file import give_back, thread_connection
from helmdash.queries import upstreams
from helmdash.queries.access.access import Caller, find_caller
from helmdash.queries.budgets import budgets

log = logging.getLogger(__name__)

# Younger than this: used as it is. Younger than MAX_AGE_S: used, and read again meanwhile.
_FRESH_S = 0.4
MAX_AGE_S = 0.9
# An unknown key is looked up again after this; a new key works at once enough.
_UNKNOWN_AGE_S = 0.5
# How long a client waits for the database before the last answer is good enough; and for one whose
# key has not been seen before.
_PATIENCE_S = 0.25
_FIRST_PATIENCE_S = 2.0
# After that nobody waits for it, until it has had this long to come back.
_AWAY_S = 1.0
# A key revoked while the database is unavailable cannot be seen; after an hour nobody is let in.
_STALE_S = 3600.0
_MOST_KEYS = 10_000
# Ours have 35 characters. What is longer is remembered by its hash, for anybody may send one of the
# length of a header.
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyContext:
    """What holds for the owner of a key: rights, budgets, and the upstreams there are."""

    caller: Caller
    rules: BudgetTable
    endpoints: tuple[Endpoint, ...]


@dataclass(slots=True)
class _Entry:
    key_context: KeyContext | None
    read_at: float
    refresh: asyncio.Task[KeyContext | None] | None = None


class Directory:
    """What holds for each key, one for each process. Used on one event loop."""

    def __init__(self, read: Callable[[str], KeyContext | None] | None = None) -> None:
        self._read = read or read_key_context
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        # Two threads: one that waits for a lost connection must not hold up the other.
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="keys-reads")
        # Writes on their own: SQLite may let them wait for a lock.
        self._notes = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keys-notes")
        self._is_noting = False
        self._away_until = 0.0

    def close(self) -> None:
        """End the threads; whatever waits is given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._notes.shutdown(wait=False, cancel_futures=True)

    async def find(self, key: str) -> KeyContext | None:
        """What holds for a key; None when it is unknown or revoked.

        Raises KeysUnavailable when the database is unavailable and the key has not been seen
        lately.
        """
        name = _name_of(key)
        entry = self._entries.get(name)
        moment = monotonic()
        known = entry.key_context if entry else None
        age = moment - entry.read_at if entry else _STALE_S
        if entry is not None and age < (_FRESH_S if known else _UNKNOWN_AGE_S):
            return known
        is_usable = known is not None and age < _STALE_S
        if moment < self._away_until and is_usable:
            return known
        refresh = self._refresh(name, key, entry)
        if is_usable and age < MAX_AGE_S:
            return known
        patience = _PATIENCE_S if is_usable else _FIRST_PATIENCE_S
        try:
            return await asyncio.wait_for(asyncio.shield(refresh), patience)
        except (TimeoutError, DatabaseError) as error:
            self._away_until = monotonic() + _AWAY_S
            if is_usable:
                return known
            log.warning("an API key cannot be checked: %s", type(error).__name__)
            raise KeysUnavailable from None

    def _refresh(
        self, name: str, key: str, entry: _Entry | None
    ) -> asyncio.Task[KeyContext | None]:
        if entry is not None and entry.refresh is not None:
            return entry.refresh
        task = asyncio.get_running_loop().create_task(self._load(name, key))
        # A refresh that nobody waits for may fail: the next request tries again.
        task.add_done_callback(_look_at)
        if entry is None:
            entry = self._entries[name] = _Entry(key_context=None, read_at=-_STALE_S, refresh=task)
            if len(self._entries) > _MOST_KEYS:
                self._entries.popitem(last=False)
        entry.refresh = task
        return task

    async def _load(self, name: str, key: str) -> KeyContext | None:
        try:
            loop = asyncio.get_running_loop()
            key_context = await loop.run_in_executor(self._threads, self._read, key)
        except BaseException:
            entry = self._entries.get(name)
            if entry is not None:
                entry.refresh = None
                if entry.key_context is None:
                    self._entries.pop(name, None)
            raise
        self._entries[name] = _Entry(key_context=key_context, read_at=monotonic())
        self._entries.move_to_end(name)
        self._away_until = 0.0
        if key_context is not None and not self._is_noting:
            self._is_noting = True
            self._notes.submit(self._note_use, key_context.caller, timezone.now())
        return key_context

    def _note_use(self, caller: Caller, now: datetime) -> None:
        try:
            keys.note_use(caller=caller, now=now)
        except Exception:
            # A date on a page is worth nobody's wait.
            log.debug("the use of a key could not be noted", exc_info=True)
        finally:
            self._is_noting = False
            give_back()


def read_key_context(key: str) -> KeyContext | None:
    """Read from the database what holds for a key, on this thread's own connection; None: no such
    key."""
    with thread_connection():
        caller = find_caller(key=key)
        if caller is None:
            return None
        project = caller.project.id
        return KeyContext(
            caller=caller,
            rules=budgets.table(project_id=project),
            endpoints=upstreams.endpoints(project_id=project),
        )


def _name_of(key: str) -> str:
    """What a key is remembered by."""
    if len(key) <= _LONGEST_NAME:
        return key
    # As long as it is, no shorter key is called like it.
    return f"sha256 {hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _look_at(task: asyncio.Task[KeyContext | None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.debug("what holds for a key could not be read", exc_info=task.exception())
