"""What a protobuf body would become, counted on the wire: before anything is made of it.

An empty message is two bytes there and up to 170 in memory, so that a body's size is no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Table: TypeAlias = "Mapping[int, Table | None]"
"""The members of a message that are counted, by their numbers: with the table of what lies in
each, an empty one where nothing in there is counted; None for numbers that may be packed."""

# protobuf's own limit.
MOST_LEVELS = 100
# An attribute is two messages and four tags.
_TAGS_EACH = 3
# A hundred thousand records have a dozen members each that are not counted. About a second.
_FREE_TAGS = 2_000_000
VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5
# google.protobuf.FieldDescriptor's TYPE_STRING and TYPE_BYTES, and those of a fixed size.
STRING = 9
_TEXTS = (STRING, 12)
_FIXED = (1, 2, 6, 7, 15, 16)
_LEFT_OUT: Any = object()


class BrokenWire(ValueError):
    """No protobuf message, or one with groups, which OTLP never has."""


def count_messages(body: bytes, table: Table, most: int) -> int:
    """How many messages (and repeated texts and packed numbers) a body has, as far as the table
    goes; more than `most`: at least so many, for the rest is not looked at. Raises BrokenWire."""
    try:
        return _count(body, table, most)
    except IndexError:
        raise BrokenWire from None


def _count(body: bytes, table: Table, most: int) -> int:
    position, end, found = 0, len(body), 0
    # Members that are not counted cost time as well: there may be as many as those counted explain.
    tags = _FREE_TAGS
    above: list[tuple[int, Table]] = []
    while True:
        while position == end:
            if not above:
                return found
            end, table = above.pop()
        tag = body[position]
        position += 1
        if tag > 127:
            tag, position = read_varint(body, position - 1)
        kind = tag & 7
        below = table.get(tag >> 3, _LEFT_OUT)
        if kind == SIZED:
            size = body[position]
            position += 1
            if size > 127:
                size, position = read_varint(body, position - 1)
            if position + size > end:
                raise BrokenWire
            if below is _LEFT_OUT:
                position += size
            elif below is None:
                found += size
                position += size
            else:
                found += 1
                tags += _TAGS_EACH
                if below and size:
                    if len(above) >= MOST_LEVELS:
                        raise BrokenWire
                    above.append((end, table))
                    end, table = position + size, below
                else:
                    position += size
        elif kind == VARINT:
            while body[position] > 127:
                position += 1
            position += 1
            found += below is None
        elif kind in (FIXED64, FIXED32):
            position += 8 if kind == FIXED64 else 4
        else:
            raise BrokenWire
        if position > end:
            raise BrokenWire
        tags -= 1
        if found > most or tags < 0:
            return max(found, most + 1)


def read_varint(body: bytes, position: int) -> tuple[int, int]:
    """A number, and where the next begins. Raises BrokenWire and IndexError."""
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise BrokenWire


def path_table(descriptor: Any, *levels: tuple[str, ...]) -> Table:
    """A table of nothing but the members so named, level by level."""
    if not levels:
        return {}
    members = (descriptor.fields_by_name[name] for name in levels[0])
    return {member.number: path_table(member.message_type, *levels[1:]) for member in members}


def whole_table(descriptor: Any, known: dict[str, Any] | None = None) -> Table:
    """A table of all that a message may hold. Messages may lie in their like."""
    known = {} if known is None else known
    if descriptor.full_name in known:
        found: Table = known[descriptor.full_name]
        return found
    made: dict[int, Table | None] = {}
    known[descriptor.full_name] = made
    for member in descriptor.fields:
        if member.message_type is not None:
            made[member.number] = whole_table(member.message_type, known)
        elif member.is_repeated and member.type in _TEXTS:
            made[member.number] = {}
        elif member.is_repeated and member.type not in _FIXED:
            made[member.number] = None
    return made
