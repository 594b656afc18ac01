"""What keys that nobody knows leave in memory, whatever they are made of."""

from __future__ import annotations

import asyncio
import tracemalloc

from helmdash.doors.callers.directory import Directory

_KEYS, _LONG = 300, 16_000


def test_a_long_key_takes_no_more_memory_than_a_short_one() -> None:
    """A header of 16 kB is one, and so many of them are remembered that it would be 160 MB."""

    async def run() -> tuple[int, list[object]]:
        directory = Directory(read=lambda _key: None)
        try:
            for number in range(_KEYS):
                await directory.find(f"{number:06}" * (_LONG // 6))
            held, _ = tracemalloc.get_traced_memory()
            # Each is known by all of it, not by how it begins.
            ends = [await directory.find("x" * _LONG + end) for end in "ab"]
        finally:
            directory.close()
        return held, [*ends]

    tracemalloc.start()
    try:
        held, found = asyncio.run(run())
    finally:
        tracemalloc.stop()

    assert held < _KEYS * 4_000
    assert found == [None, None]
