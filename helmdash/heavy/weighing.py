"""How much work a body will be, told by a glance at its bytes: before anything is parsed."""

from __future__ import annotations

# What so few bytes could cost (500 of the shortest messages) is looked at no further, so that most
# requests are not weighed at all.
_LIGHT_BYTES = 16 * 1024
# What is read in less time than it takes to hand it to a thread and back, some 0.6 ms for a lone
# client: 64 KiB of no more strings and values than a conversation has take 0.3 ms.
_QUICK_BYTES = 64 * 1024
_QUICK_STRINGS = 1_000
_QUICK_VALUES = 4_000
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
# Any other value (a number, an empty list) costs 0.2 us: read, looked through, and freed. Twelve
# clients that sent half a million in a MiB, over and over, kept everybody waiting for a second.
_HEAVY_VALUES = 30_000
# Each value but the first of its list has a comma before it, and each list or object a bracket.
_VALUE_SIGNS = b",[{"
# Where JSON is looked for inside of texts: 10 ms for a MiB, and up to 1.5 us for each bracket. No
# model writes so much in one reply.
_HEAVY_READ_BYTES = 256 * 1024
_HEAVY_BRACKETS = 5_000
_BRACKETS = b"[{"


def is_heavy(body: bytes, *, reads_texts: bool = False) -> bool:
    """Whether working through a JSON body may hold up others for longer than some milliseconds.

    Counts messages, strings by their quotes, and values by the signs around them, all of that
    outside of strings; takes about three milliseconds for a MiB at most. reads_texts: the work is
    to find JSON inside of the body's texts, so that their brackets count, too.
    """
    size = len(body)
    if size <= _LIGHT_BYTES:
        return False
    if size > (_HEAVY_READ_BYTES if reads_texts else _HEAVY_BYTES):
        return True
    if any(body.count(sign) > _HEAVY_MESSAGES for sign in _MESSAGE_SIGNS):
        return True
    if body.count(b'"') - body.count(b'\\"') > 2 * _HEAVY_STRINGS:
        return True
    if reads_texts and _count(body, _BRACKETS) > _HEAVY_BRACKETS:
        return True
    return (
        _count(body, _VALUE_SIGNS) > _HEAVY_VALUES
        and _count(_outside_of_strings(body), _VALUE_SIGNS) > _HEAVY_VALUES
    )


def is_quick(body: bytes) -> bool:
    """Whether an event loop reads a JSON body sooner than a thread does. Counts strings, and the
    signs around values wherever they are; takes some ten microseconds for 30 kB."""
    return (
        len(body) <= _QUICK_BYTES
        and body.count(b'"') <= 2 * _QUICK_STRINGS
        # Each by itself: of few in a long text, a search finds all sooner than one pass by bytes.
        and body.count(b",") + body.count(b"[") + body.count(b"{") <= _QUICK_VALUES
    )


def _count(body: bytes, signs: bytes) -> int:
    # One pass in C, however many there are.
    return len(body) - len(body.translate(None, signs))


def _outside_of_strings(body: bytes) -> bytes:
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])
