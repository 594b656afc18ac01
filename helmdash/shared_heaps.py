"""Two heaps of malloc for all threads of a server process, where Linux gives each thread its own.

A heap keeps what it needed most at once, and a process has some thirty threads, so what lay free in
their heaps grew for as long as anybody looked: it had 20 MB more after a quarter of an hour (ADR
76). Nothing happens where there is another malloc than GNU's, nor where the operator says how many
(`MALLOC_ARENA_MAX`). The host's writer process has one (helmdash.cli.writer.keeping).
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
