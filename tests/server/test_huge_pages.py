"""The heap of a server that has worked for a while lies in huge pages, where there are any."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from helmdash import huge_pages

_MIB = 1 << 20
_HEAP = """
import re
from pathlib import Path
from helmdash.huge_pages import use_huge_pages
kept = [bytes(200) for _ in range(200_000)]
lent = use_huge_pages()
rollup = Path("/proc/self/smaps_rollup")
told = re.search(r"AnonHugePages: +(\\d+) kB", rollup.read_text()) if rollup.exists() else None
print(lent, int(told[1]) * 1024 if told else 0)
assert kept == [bytes(200)] * 200_000
"""


def mapping(begin: int, mib: int, *, in_use: int, what: str = "0 ", may: str = "rw-p") -> str:
    """One as /proc/self/smaps tells of it."""
    return (
        f"{begin:x}-{begin + mib * _MIB:x} {may} 00000000 00:00 {what}\n"
        f"Size:           {mib * 1024} kB\nRss:            {in_use} kB\nPss:            1 kB\n"
    )


def test_what_it_says_is_lent_is_lent_and_nothing_is_lost() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _HEAP], capture_output=True, text=True, check=True
    ).stdout
    said, found = map(int, told.split())

    assert said % (2 * _MIB) == 0
    assert found >= said


def test_only_memory_of_objects_that_is_in_use_is_taken() -> None:
    at = 0x7F0000100000  # half a huge page in
    told = "".join(
        (
            mapping(at, 9, in_use=9_000),
            mapping(at + (16 << 20), 8, in_use=100),  # a thread's stack
            mapping(at + (32 << 20), 8, in_use=8_192, what="77  /usr/lib/libc.so"),
            mapping(at + (48 << 20), 8, in_use=8_192, may="r-xp"),
            mapping(at + (64 << 20), 1, in_use=1_024),  # none fits
            mapping(0x55_0000_0000, 4, in_use=4_096, what="0    [heap]"),
        )
    )

    found = list(huge_pages._dense_mappings(told))

    assert found == [
        (0x7F0000200000, 0x7F0000A00000),
        (0x55_0000_0000, 0x55_0000_0000 + 4 * _MIB),
    ]


def test_they_are_asked_for_once_and_not_before_it_is_worth_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def ask() -> int:
        asked.append("now")
        return 0

    looks: Iterator[bool] = iter((False, False, True))
    monkeypatch.setattr(huge_pages, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(huge_pages, "use_huge_pages", ask)

    async def run() -> None:
        await huge_pages.use_huge_pages_once(lambda: next(looks))

    asyncio.run(run())

    assert asked == ["now"]
    assert next(looks, None) is None
