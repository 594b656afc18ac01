"""The brake of sign-in, before anything else of a try is looked at.

An address that this process knows to be waiting (operations.access.sign_in_throttle) is refused
without a thread, a body or the database, and slowly: who tries again at once is held for a second
each time, so that guessing costs the other callers nothing.
"""

from __future__ import annotations

import asyncio

from django.utils import timezone

from helmdash.doors.faults import TooManyTries
from helmdash.metrics import limited_requests
from helmdash.operations.access.sign_in_throttle import waiting_s
from helmdash.operations.database.clock import reckoned

_HELD_S = 1.0
# A held request costs some kilobytes. More at once are refused at once.
_MOST_HELD = 200


class SignInBrake:
    """One for each process, used on one event loop."""

    def __init__(self, held_s: float = _HELD_S) -> None:
        self._held_s = held_s
        self._held = 0

    async def check(self, address: str) -> None:
        """Raises TooManyTries where the address has to wait."""
        now = reckoned() or timezone.now()
        wait_s = waiting_s(address=address or None, now=now)
        if not wait_s:
            return
        if self._held < _MOST_HELD:
            self._held += 1
            try:
                await asyncio.sleep(self._held_s)
            finally:
                self._held -= 1
        limited_requests.labels("wrong_passwords").inc()
        raise TooManyTries(wait_s)
