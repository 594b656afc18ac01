"""Which member of a protobuf body no reader takes. Looked for only once a body was refused: the
reader says neither where the fault is nor what to do."""

from __future__ import annotations

from collections import Counter
from typing import Any

from helmdash.otlp.wire import (
    FIXED32,
    FIXED64,
    MOST_LEVELS,
    SIZED,
    STRING,
    VARINT,
    BrokenWire,
    read_varint,
)

# A hundred times what an SDK sends at once; they take about a second.
_MOST_MEMBERS = 500_000
# So much of a path is shown: what comes behind lies in there.
_PATH_CHARS = 200


def unreadable_member(body: bytes, descriptor: Any) -> str:
    """A sentence about the first one; "" where none was found, or not soon. descriptor: of the
    message."""
    try:
        return _Search(body).fault(0, len(body), descriptor, ())
    except (BrokenWire, IndexError):
        return ""


class _Search:
    """One walk through a body."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._left = _MOST_MEMBERS

    def fault(self, position: int, end: int, descriptor: Any, path: tuple[str, ...]) -> str:
        """The sentence for what lies between two places. Raises BrokenWire and IndexError."""
        if len(path) > MOST_LEVELS:
            return (
                f"{_shown(path)}: lies more than {MOST_LEVELS} messages deep, which no reader of "
                "protobuf takes. Send lists and objects that are nested so deep as a text."
            )
        seen: Counter[int] = Counter()
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise BrokenWire
            tag, position = read_varint(self._body, position)
            number, kind = tag >> 3, tag & 7
            start, position = self._extent(kind, position)
            member = descriptor.fields_by_number.get(number) if kind == SIZED else None
            if position > end:
                raise BrokenWire
            if member is None:
                continue
            name = f"{member.name}[{seen[number]}]" if member.is_repeated else member.name
            seen[number] += 1
            if member.message_type is not None:
                found = self.fault(start, position, member.message_type, (*path, name))
            else:
                found = self._text_fault(start, position, member, (*path, name))
            if found:
                return found
        return ""

    def _extent(self, kind: int, position: int) -> tuple[int, int]:
        """Where the value of a member begins and ends."""
        if kind == SIZED:
            size, start = read_varint(self._body, position)
            return start, start + size
        if kind == VARINT:
            return position, read_varint(self._body, position)[1]
        if kind in (FIXED32, FIXED64):
            return position, position + (8 if kind == FIXED64 else 4)
        raise BrokenWire

    def _text_fault(self, start: int, end: int, member: Any, path: tuple[str, ...]) -> str:
        if member.type != STRING:
            return ""
        try:
            self._body[start:end].decode()
        except UnicodeDecodeError:
            return (
                f"{_shown(path)}: is not UTF-8, as texts of protobuf have to be. Replace what is "
                "not, or send a value as bytes."
            )
        return ""


def _shown(path: tuple[str, ...]) -> str:
    whole = ".".join(path)
    return whole if len(whole) <= _PATH_CHARS else whole[:_PATH_CHARS] + "…"
