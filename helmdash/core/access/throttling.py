"""How often a key may ask, and how often an address or account may be wrong. Pure: `now` is given.

Everything here is bounded: what is remembered of keys and addresses never exceeds a fixed number
of entries, so that a flood of names costs no memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# As many as a process is likely to see at once; an entry takes about 200 bytes.
MOST_ENTRIES = 10_000
_WINDOW_S = 60.0
# Clocks that count seconds since a start resolve less than this after years.
_ROUNDING_S = 1e-6


class RequestRates:
    """At most `per_second` requests of each key in any second, and no more at once.

    Requests refill evenly (GCRA): a key that has sent a second's worth at once may go on after
    1 / per_second seconds. One number for each key. 0 means no limit.
    """

    __slots__ = ("_due", "_most", "_room_s", "_spacing_s")

    def __init__(self, per_second: int, *, most: int = MOST_ENTRIES) -> None:
        self._spacing_s = 1.0 / per_second if per_second else 0.0
        self._room_s = 1.0 - self._spacing_s
        self._most = most
        self._due: dict[int | str, float] = {}

    def take(self, key: int | str, now: float) -> float:
        """Count one request; 0.0 when it may go on, else the seconds to wait, and it is not
        counted. `now` is monotonic, in seconds."""
        spacing = self._spacing_s
        if not spacing:
            return 0.0
        due = self._due.get(key, 0.0)
        if due <= now:
            due = now
        elif due - now > self._room_s + _ROUNDING_S:
            return due - now - self._room_s
        self._due[key] = due + spacing
        if len(self._due) > self._most:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Drop the keys that have been silent: having none is the same as a time that is past."""
        # A copy first: other threads go on counting.
        kept = {key: due for key, due in list(self._due.items()) if due > now}
        # More keys than that within one second: the oldest start anew.
        extra = max(0, len(kept) - self._most)
        self._due = dict(list(kept.items())[extra:])


class WrongTries:
    """At most `per_minute` wrong credentials of each address in a window of one minute.

    The window begins with the first wrong one. 0 means no limit.
    """

    __slots__ = ("_most", "_per_minute", "_windows")

    def __init__(self, per_minute: int, *, most: int = MOST_ENTRIES) -> None:
        self._per_minute = per_minute
        self._most = most
        # Address -> (when its window began, how many since), oldest window first.
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait_s(self, address: str, now: float) -> float:
        """0.0 when a credential of this address may be looked at, else the seconds to wait."""
        window = self._windows.get(address)
        if window is None or not self._per_minute or window[1] < self._per_minute:
            return 0.0
        return max(0.0, window[0] + _WINDOW_S - now)

    def note(self, address: str, now: float) -> bool:
        """Count a wrong one. False: it is one too many, begun before the limit was reached."""
        start, count = self._windows.get(address, (now, 0))
        if now - start >= _WINDOW_S:
            start, count = now, 0
        self._windows[address] = (start, count + 1)
        if not count:
            self._windows.move_to_end(address)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)
        return not self._per_minute or count < self._per_minute


def retry_after(wait_s: float) -> int:
    """A wait in seconds as the header `Retry-After` has it: whole seconds, at least one.

    >>> retry_after(0.2), retry_after(3.0), retry_after(3.1)
    (1, 3, 4)
    """
    return max(1, math.ceil(wait_s - _ROUNDING_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How long somebody waits who keeps being wrong: `free` tries, then 1 s, 2 s, 4 s … `longest`.

    `free` None: never any wait.
    """

    free: int | None
    longest: timedelta
    forgotten_after: timedelta
    """Of silence, counted from the end of the latest wait; then it starts anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """Wrong tries of one account or address so far, and until when it waits."""

    failures: int
    blocked_until: datetime


def next_try(before: Tries | None, *, policy: WaitPolicy, now: datetime) -> Tries:
    """The tries after one more that turns out wrong, and the wait it brings. before None: the
    first."""
    known = 0 if before is None or is_forgotten(before, policy=policy, now=now) else before.failures
    failures = known + 1
    return Tries(failures=failures, blocked_until=now + wait_after(failures, policy))


def given_back(before: Tries, failures: int, *, now: datetime) -> Tries:
    """What holds when so many of the tries turn out to have been an owner's typing errors."""
    left = max(0, before.failures - failures)
    return replace(before, failures=left, blocked_until=min(before.blocked_until, now))


def wait_after(failures: int, policy: WaitPolicy) -> timedelta:
    """How long the next try has to wait after so many wrong ones."""
    if policy.free is None or failures < policy.free:
        return timedelta(0)
    # 2 ** 20 seconds are twelve days: longer than any policy.
    return min(policy.longest, timedelta(seconds=2 ** min(20, failures - policy.free)))


def is_forgotten(tries: Tries, *, policy: WaitPolicy, now: datetime) -> bool:
    """Whether there has been silence for so long that the tries count no more."""
    return now >= tries.blocked_until + policy.forgotten_after
