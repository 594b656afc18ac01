"""Passwords are hashed one at a time, beside the rest of the process.

A hash takes 0.2 to 0.4 s of a core, and Django would compute as many at once as there are
requests: ten of them leave the gateway a tenth of the machine. The work itself runs without
Python's lock, so one thread that gives way to all others is enough.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.hashers import PBKDF2PasswordHasher

# With 0.3 s each, the last one has its answer after five seconds; more than that come again later.
MOST_WAITING = 16
# Gives way to everything that serves, and still gets a core that nobody wants.
_NICENESS = 5


class TooManyHashes(Exception):
    """So many passwords wait to be hashed that another one had better come again later."""

    wait_s = 5


class QueuedPBKDF2Hasher(PBKDF2PasswordHasher):
    """Django's own, with its format and strength; only where and when it is computed differs."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """The hash, made by the one thread for it. iterations None: Django's number. Raises
        TooManyHashes where 16 wait already."""
        if not _places.acquire(blocking=False):
            raise TooManyHashes
        try:
            return _thread().submit(super().encode, password, salt, iterations).result()
        finally:
            _places.release()


_places = threading.BoundedSemaphore(MOST_WAITING)
_making = threading.Lock()
_made: tuple[int, ThreadPoolExecutor] | None = None


def _thread() -> ThreadPoolExecutor:
    """The one thread of this process. A forked child has none of its parent's."""
    global _made
    with _making:
        if _made is None or _made[0] != os.getpid():
            lane = ThreadPoolExecutor(
                max_workers=1, thread_name_prefix="passwords", initializer=_give_way
            )
            _made = (os.getpid(), lane)
        return _made[1]


def _give_way() -> None:
    """Where threads have priorities of their own, which is on Linux only."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
