"""The heap of a long-lived process in pages of 2 MiB, where Linux lends them to who asks.

A call through the gateway touches some megabytes of Python's objects, all over a heap of a hundred.
In pages of 4 KiB the processor finds hardly any of their addresses where it keeps the latest ones,
least of all when other processes have just had the core.

Asked for once, when a process has worked for a while: moving eighty megabytes takes a sixth of a
second. Memory that is taken later comes as it always did. Nothing happens on other systems, and
where the operator has switched such pages off.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

log = logging.getLogger(__name__)

_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MAPPINGS = Path("/proc/self/smaps")
_SIZE = 2 << 20
# From <sys/mman.h>: keep to such pages from now on; and put what is there into them now (Linux 6.1;
# earlier ones do it by and by).
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
# Of a mapping so much is in use: stacks of threads are not, and would be taken whole.
_DENSE = 0.75
_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ \S+ 0 *(?:\[heap\])?\n")
_IN_USE = re.compile(r"Rss: +(\d+) kB")
_LOOK_SECONDS = 5.0


async def use_huge_pages_once(is_worth_it: Callable[[], bool]) -> None:
    """Ask for them as soon as it is worth the while, by a thread: looked at now and then."""
    while not is_worth_it():
        await asyncio.sleep(_LOOK_SECONDS)
    lent = await asyncio.to_thread(use_huge_pages)
    log.debug("%d MiB lie in huge pages", lent >> 20)


def use_huge_pages() -> int:
    """Ask for them; how many bytes were moved into such pages. Never raises."""
    try:
        if "[never]" in _SWITCH.read_text():
            return 0
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        return sum(_lent(advise, *each) for each in _dense_mappings(_MAPPINGS.read_text()))
    except (OSError, AttributeError, ValueError) as error:
        log.debug("no huge pages: %s", error)
        return 0


def _dense_mappings(told: str) -> Iterator[tuple[int, int]]:
    """Begin and end of what was mapped for objects and is in use, to whole huge pages."""
    for found in _HEAD.finditer(told):
        begin, end = int(found[1], 16), int(found[2], 16)
        in_use = _IN_USE.search(told, found.end())
        if in_use is not None and int(in_use[1]) * 1024 >= _DENSE * (end - begin):
            first, last = -(-begin // _SIZE) * _SIZE, end // _SIZE * _SIZE
            if first < last:
                yield first, last


def _lent(advise: Callable[[int, int, int], int], begin: int, end: int) -> int:
    advise(begin, end - begin, _MADV_HUGEPAGE)
    # One by one: between two of them others may have memory, too.
    return sum(_SIZE for at in range(begin, end, _SIZE) if advise(at, _SIZE, _MADV_COLLAPSE) == 0)
