"""The lines of a spool: how they are sealed when written, and what they say when read again.

A line ends in a checksum of what stands before it, so that a flipped bit makes a line that cannot
be read, and not a call that never was. Lines of earlier versions have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import orjson

BEGIN, END, CALL, DONE = b'{"begin":', b'{"end":', b'{"seq":', b'{"done":'
_COUNTED = b'{"counted":'
_SEAL = b',"crc":'
_STARTS = re.compile(rb'\{"(?:begin|end|seq|done|counted)":')
_SEALS = re.compile(rb',"crc":(\d{1,10})\}')
# Of a line that cannot be read, so many seals are looked at, and so many starts before each.
_MOST_SEALS = 1000
_MOST_STARTS = 8
# The highest primary key that a database has.
_MOST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Begun:
    """A call is under way, in the project with this primary key."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A call ended with nothing to record."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Written:
    """A call that ended; `capture` is all that was seen."""

    seq: int
    project_id: int
    capture: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """Calls by their seq, both ends included: stored, or given up."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Whoever read this spool has booked what was under way, and what was damaged."""


Line = Begun | Ended | Written | Done | Counted


def begin_line(call_id: str, project_id: int) -> bytes:
    """A call is under way."""
    return _sealed(BEGIN + orjson.dumps(call_id) + b',"project":%d' % project_id)


def end_line(call_id: str) -> bytes:
    """It ended with nothing to record."""
    return _sealed(END + orjson.dumps(call_id))


def call_line(seq: int, project_id: int, capture: bytes) -> bytes:
    """It ended: its number in the segment, and all that was seen of it, as JSON."""
    return _sealed(CALL + b'%d,"project":%d,"capture":%s' % (seq, project_id, capture))


def done_line(ranges: list[list[int]]) -> bytes:
    """Calls are stored, or given up: the first and the last number of each run of them."""
    return _sealed(DONE + orjson.dumps(ranges))


def counted_line() -> bytes:
    """What is above this line was booked. Behind a line that a power cut tore."""
    return b"\n" + _sealed(_COUNTED + b"1")


def read_line(line: bytes) -> Line | None:
    """What a line says; None for one that is damaged, or that no version of ours wrote."""
    try:
        told = orjson.loads(line)
        return _meaning(told) if isinstance(told, dict) and _is_sound(line) else None
    except (ValueError, TypeError, KeyError):
        return None


def salvaged(line: bytes) -> Iterator[tuple[Line | None, bytes]]:
    """Of a line that cannot be read, the sealed ones in it, as where a line break was hit; and
    what is between them, which nobody can read (None)."""
    done = 0
    for number, seal in enumerate(_SEALS.finditer(line)):
        if number >= _MOST_SEALS:
            break
        for tries, start in enumerate(_STARTS.finditer(line, done, seal.start())):
            if tries >= _MOST_STARTS:
                break
            piece = line[start.start() : seal.end()]
            if int(seal[1]) == crc32(piece[: seal.start() - start.start()]):
                if (rest := line[done : start.start()]).strip():
                    yield None, rest
                yield read_line(piece), piece
                done = seal.end()
                break
    if rest := line[done:].strip():
        yield None, rest


def _sealed(head: bytes) -> bytes:
    return head + _SEAL + b"%d}\n" % crc32(head)


def _is_sound(line: bytes) -> bool:
    at = line.rfind(_SEAL)
    return at < 0 or int(line[at + len(_SEAL) : -1]) == crc32(line[:at])


def _meaning(told: Mapping[str, Any]) -> Line | None:
    match told:
        case {"begin": str(call_id)}:
            return Begun(call_id)
        case {"end": str(call_id)}:
            return Ended(call_id)
        case {"done": list(ranges)}:
            return Done(tuple((int(low), int(high)) for low, high in ranges))
        case {"counted": int()}:
            return Counted()
        case {
            "seq": int(seq),
            "project": int(project),
            "capture": {"model": str()} as capture,
        } if 0 < project <= _MOST_ID:
            return Written(seq, project, capture)
        case _:
            return None
