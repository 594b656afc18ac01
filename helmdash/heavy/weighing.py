"""How much work a body will be, told by a glance at its bytes: before anything is parsed."""

from __future__ import annotations

# What the smallest of texts could cost (64 KiB of the shortest messages: 25 ms) is looked at no
# further, so that ordinary requests are not weighed at all.
_LIGHT_BYTES = 64 * 1024
# Parsing and hashing alone take about 5 ms for a MiB, whatever is in it. A quarter of a million
# tokens of text are about as much.
_HEAVY_BYTES = 1024 * 1024
# A short message has four strings and costs about 13 us in all: 10,000 strings are some 30 ms.
# Two hundred tools with their schemas and a talk of 500 turns stay below.
_HEAVY_STRINGS = 10_000


def is_heavy(body: bytes) -> bool:
    """Whether working through a JSON body may hold up others for longer than some milliseconds.

    Counts strings by their quotes, those inside of strings left out; takes about a millisecond
    for each MiB at most.
    """
    size = len(body)
    if size <= _LIGHT_BYTES:
        return False
    if size > _HEAVY_BYTES:
        return True
    return body.count(b'"') - body.count(b'\\"') > 2 * _HEAVY_STRINGS
