"""Two heaps of malloc for all threads of a server process, where Linux gives each thread its own.

A heap keeps what it needed most at once. A process has some thirty threads, of which each makes a
page or stores a group now and then, so what lies free in their heaps grew for as long as anybody
looked: by 25 MB in the second half of half an hour. Two are no slower, for hardly more than one
thread allocates at a time. The host's writer process has one (helmdash.cli.writer.keeping).

Measured with PostgreSQL, two workers with eight heaps for each core beside two with two, after 14
minutes of pages, reports, calls of the gateway and outages: 39 and 36 MB lay free, or 14 and 13;
43 were in use in all of them, and a process had 222 and 218 MB, or 198 and 202. CPU for each
request was the same. Nothing happens where there is another malloc than GNU's, nor where the
operator says how many (`MALLOC_ARENA_MAX`).
"""

from __future__ import annotations

import ctypes
import os

_HEAPS = 2
# From <malloc.h>.
_M_ARENA_MAX = -8
_OPERATORS = "MALLOC_ARENA_MAX"


def share_heaps() -> None:
    """Have threads that begin from now on share the heaps. Never raises."""
    if os.environ.get(_OPERATORS):
        return
    try:
        tell = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    tell.argtypes = (ctypes.c_int, ctypes.c_int)
    tell(_M_ARENA_MAX, _HEAPS)
