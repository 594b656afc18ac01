"""How much work a body will be, told by a glance at its bytes: before anything is parsed."""

from __future__ import annotations

# What so few bytes could cost (500 of the shortest messages) is looked at no further, so that most
# requests are not weighed at all.
_LIGHT_BYTES = 16 * 1024
# Parsing and hashing alone take about 5 ms for a MiB, whatever is in it. A quarter of a million
# tokens of text are about as much.
_HEAVY_BYTES = 1024 * 1024
# A message costs about 13 us in all: 500 are some 7 ms. Twelve clients that sent 1,500 each, over
# and over, kept everybody waiting for a second.
_HEAVY_MESSAGES = 500
# Every message has one of these; inside of texts, quotes are escaped.
_MESSAGE_SIGNS = (b'"role"', b'"parts"')
# Parts, reports and entries have strings, too: two hundred tools with their schemas stay below.
_HEAVY_STRINGS = 10_000


def is_heavy(body: bytes) -> bool:
    """Whether working through a JSON body may hold up others for longer than some milliseconds.

    Counts messages, and strings by their quotes, those inside of strings left out; takes about two
    milliseconds for a MiB at most.
    """
    size = len(body)
    if size <= _LIGHT_BYTES:
        return False
    if size > _HEAVY_BYTES:
        return True
    if any(body.count(sign) > _HEAVY_MESSAGES for sign in _MESSAGE_SIGNS):
        return True
    return body.count(b'"') - body.count(b'\\"') > 2 * _HEAVY_STRINGS
