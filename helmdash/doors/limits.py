"""How much a caller may ask of this process, and how often an address may be wrong about a key.

A key that was good lately goes on working from an address that waits: one agent with a wrong key
must not stop all others behind the same address. Keys that nobody knows are then refused without
being looked up. Sign-in has its own brake (helmdash.operations.access.sign_in_throttle).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from time import monotonic

from django.utils import timezone

from helmdash import conf
from helmdash.core.access.throttling import MOST_ENTRIES, RequestRates, WrongTries, retry_after
from helmdash.doors.faults import (
    ExpiredKey,
    Fault,
    TooManyRequests,
    TooManyWrongKeys,
    UnknownKey,
)
from helmdash.metrics import limited_requests
from helmdash.queries.access.access import Caller


class KeyLimits:
    """The limits of one process. May be used by several threads."""

    def __init__(self, *, requests_per_second: int, wrong_keys_per_minute: int) -> None:
        """0 means no limit."""
        self._requests_per_second = requests_per_second
        self._rates = RequestRates(requests_per_second)
        self._wrong = WrongTries(wrong_keys_per_minute)
        # Of keys that were good lately: whose they are, and when they were good last.
        self._good: dict[str, tuple[Caller, float]] = {}
        self._lock = threading.Lock()

    def worth_looking_up(self, keys: Sequence[str], address: str) -> Sequence[str]:
        """Those of the keys that may be looked up. Raises TooManyWrongKeys: none of them.

        address: whom limits count the request as; "" where it has none, which is never limited.
        """
        wait_s = self._wrong.wait_s(address, monotonic())
        if not wait_s or not address:
            return keys
        good = [key for key in keys if key in self._good]
        if not good:
            raise _wrong_too_often(wait_s)
        return good

    def let_in(self, key: str, caller: Caller) -> None:
        """The key is known: count a request of it. Raises ExpiredKey, TooManyRequests."""
        require_valid(caller)
        self.take(caller.key_id)
        good = (caller, monotonic())
        if key in self._good:
            self._good[key] = good
        else:
            self._know(key, good)

    def known(self, keys: Sequence[str], *, seconds: float) -> Caller | None:
        """Whose the first of the keys is that was good at a door of this process within so long:
        for who must answer while the database cannot be asked."""
        since = monotonic() - seconds
        found = (self._good[key] for key in keys if key in self._good)
        now = timezone.now()
        for caller, seen_at in found:
            if seen_at > since and (caller.expires_at is None or now < caller.expires_at):
                return caller
        return None

    def take(self, who: int | str) -> None:
        """Count a request of a key (its id) or of somebody else. Raises TooManyRequests."""
        wait_s = self._rates.take(who, monotonic())
        if wait_s:
            limited_requests.labels("requests").inc()
            raise TooManyRequests(retry_after(wait_s), self._requests_per_second)

    def turn_away(self, keys: Sequence[str], address: str) -> Fault:
        """Why none of the keys lets anybody in. Each of them was a try."""
        now = monotonic()
        with self._lock:
            for key in keys:
                self._good.pop(key, None)
            # Every one is noted, though the first may be one too many already.
            allowed = [not address or self._wrong.note(address, now) for _ in keys]
        if all(allowed):
            return UnknownKey()
        return _wrong_too_often(self._wrong.wait_s(address, now))

    def _know(self, key: str, good: tuple[Caller, float]) -> None:
        with self._lock:
            self._good[key] = good
            if len(self._good) > MOST_ENTRIES:
                del self._good[next(iter(self._good))]


def require_valid(caller: Caller) -> None:
    """Raises ExpiredKey where the caller's key had its time."""
    if caller.expires_at is not None and timezone.now() >= caller.expires_at:
        raise ExpiredKey(caller.name, caller.expires_at)


@cache
def key_limits() -> KeyLimits:
    """Those of this process, by its settings."""
    env = conf.env()
    return KeyLimits(
        requests_per_second=env.requests_per_second,
        wrong_keys_per_minute=env.wrong_tries_per_minute,
    )


def _wrong_too_often(wait_s: float) -> Fault:
    limited_requests.labels("wrong_keys").inc()
    return TooManyWrongKeys(retry_after(wait_s))
