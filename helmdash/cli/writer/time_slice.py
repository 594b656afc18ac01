"""A long time slice for a process that nobody waits for by the millisecond.

Of the processes that want a core Linux takes the one whose slice ends first (EEVDF). The writer
works in bursts of some tens of milliseconds, ten times a second, and a server that was asked
something meanwhile had to wait out its slice. With a long one the writer has as much of the core as
before, and comes after whoever is quickly done.
"""

from __future__ import annotations

import ctypes
import logging
import platform
import struct
from typing import Final

log = logging.getLogger(__name__)

# The longest that Linux takes (since 6.12; earlier releases take none of a usual process).
LONGEST_SECONDS: Final = 0.1

# The numbers of sched_setattr and sched_getattr: glibc has no names for them before 2.41.
_CALLS: Final = {"x86_64": (314, 315), "aarch64": (274, 275)}
# `struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period, two bounds.
_ATTRIBUTES: Final = struct.Struct("IIQiIQQQII")
_RUNTIME: Final = 5
# Of what runs in real time the same member says something else.
_USUAL_POLICIES: Final = frozenset({0, 3})


def take_longest_time_slice() -> bool:
    """Ask for it, for this thread and those that it starts; whether Linux took it. Never raises."""
    numbers = _CALLS.get(platform.machine()) if platform.system() == "Linux" else None
    if numbers is None:
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError) as error:
        log.debug("no long time slice: %s", error)
        return False
    told = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if call(numbers[1], 0, told, _ATTRIBUTES.size, 0) != 0:
        return False
    attributes = [*_ATTRIBUTES.unpack(told.raw)]
    if attributes[1] not in _USUAL_POLICIES:
        return False
    attributes[_RUNTIME] = round(LONGEST_SECONDS * 1e9)
    is_taken: bool = call(numbers[0], 0, _ATTRIBUTES.pack(*attributes), 0) == 0
    if not is_taken:
        log.debug("no long time slice: error %d", ctypes.get_errno())
    return is_taken
