"""JSON bodies: read them, and change single members of an object byte for byte around them.

A request that passes through keeps the client's own bytes (ADR 9). Where a member has to change,
only its bytes are replaced: the scanner knows where each top-level member of a sound JSON object
stands, and looks at nothing inside their values. An object that says a name twice, or spells it
with escapes, is written anew from its parsed form instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from helmdash.core.text.jsontext import replace_lone_surrogates
from helmdash.providers.wire import Json, Object

_KEY = re.compile(rb'\s*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+:\s*+', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,}\]]++")
_AFTER = re.compile(rb"\s*+([,}])")
_AFTER_ITEM = re.compile(rb"\s*+([,\]])")
_SPACE = re.compile(rb"\s*+")
# Everything up to the next bracket that is not inside a string.
_BRACKET = re.compile(
    rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL
)
_OPENING = b"{["
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# An item that is an object without brackets inside, as most messages are: in one step.
_FLAT_ITEM = re.compile(
    rb'\s*+(\{[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+\})\s*+([,\]])', re.DOTALL
)
# How a letter of a member's name may be spelled instead; no writer of JSON does.
_ESCAPED_LETTERS = (rb"\u004", rb"\u005", rb"\u006", rb"\u007")


class _Items(NamedTuple):
    """Where an array stands, from its bracket on, and its items; all ends exclusive."""

    start: int
    end: int
    spans: Sequence[tuple[int, int]]


class _Member(NamedTuple):
    """Where one member stands: its key from its quote on, its value, both ends exclusive."""

    name: bytes
    key_at: int
    value_at: int
    end: int


def read_json(body: bytes) -> Json:
    """Read a JSON text; None for anything that is none. Never raises.

    Half of a character, as JavaScript leaves it where it cuts an emoji, becomes U+FFFD: other
    readers take it, and all else that a reply says would be lost for it.
    """
    try:
        return orjson.loads(body)
    except ValueError:
        return _read_halves(body) if _HALF.search(body) else None


def _read_halves(body: bytes) -> Json:
    try:
        return orjson.loads(replace_lone_surrogates(body.decode()))
    except ValueError:
        return None


def read_object(body: bytes) -> Object | None:
    """Read a JSON object; None for anything else. Never raises."""
    value = read_json(body)
    return value if isinstance(value, dict) else None


def to_json(value: Json) -> bytes:
    """Compact JSON bytes. Mappings and tuples of our values are written as plain JSON."""
    return orjson.dumps(value, default=_plain)


def json_text(value: Json) -> str:
    """JSON as text, of what a reader gave; "" for what is nested too deep. Never raises."""
    try:
        return to_json(value).decode()
    except TypeError:
        return ""


def with_members(
    body: bytes,
    parsed: Object,
    changes: Mapping[str, Json],
    *,
    renamed: Mapping[str, str] | None = None,
) -> bytes:
    """Set members of the object in `body`, in place, and rename others (None: none).

    `parsed` is what `body` says. A member that is not there is put at the start. The very same
    bytes come back when there is nothing to change.
    """
    due = {name: value for name, value in changes.items() if not _says(parsed, name, value)}
    names = {old: new for old, new in (renamed or {}).items() if old in parsed}
    if not due and not names:
        return body
    added = {name: value for name, value in due.items() if name not in parsed}
    replaced = {name: value for name, value in due.items() if name in parsed}
    edited = _edit(body, replaced=replaced, renamed=names) if replaced or names else body
    edited = _insert(edited, added) if edited is not None else None
    return edited if edited is not None else _rewrite(parsed, due, names)


def without_members(body: bytes, names: Sequence[str]) -> bytes | None:
    """Take members out of the object in `body`; None where it cannot be done in place."""
    members = _members(body)
    if members is None:
        return None
    gone = {name.encode() for name in names}
    pieces: list[bytes] = []
    position = 0
    for index, member in enumerate(members):
        if member.name not in gone:
            continue
        start, end = _with_comma(members, index, gone=gone)
        pieces.append(body[position:start])
        position = end
    pieces.append(body[position:])
    return b"".join(pieces)


def with_items(
    body: bytes, parsed: Object, name: str, items: Sequence[int | Object]
) -> tuple[bytes, dict[str, Json]]:
    """Set an array of the object in `body` to some of its own items, by index, and new ones.

    Items that follow each other as before keep their bytes, and those between them. `parsed` is
    what `body` says; the answer is both as they are then. A value that is no array counts as an
    array of it.
    """
    own = parsed.get(name)
    old = own if isinstance(own, list) else [own]
    if list(items) == [*range(len(old))]:
        return body, dict(parsed)
    said = [old[item] if isinstance(item, int) else item for item in items]
    changed = {**parsed, name: said}
    if own is not old or not old:
        return with_members(body, parsed, {name: said}), changed
    if _only_adds(items, len(old)) and (end := _end_of_items(body, name)):
        added = b"".join(b",%b" % to_json(item) for item in items[len(old) :])
        return b"%b%b%b" % (body[:end], added, body[end:]), changed
    found = _find_items(body, name, len(old))
    if found is None:
        return with_members(body, parsed, {name: said}), changed
    pieces = b",".join(_pieces(body, found.spans, items))
    return b"%b[%b]%b" % (body[: found.start], pieces, body[found.end :]), changed


def _only_adds(items: Sequence[int | Object], count: int) -> bool:
    """Whether all of an array's own items come first, as they were, and then none but new ones."""
    is_whole = list(items[:count]) == [*range(count)]
    return is_whole and not any(isinstance(item, int) for item in items[count:])


def _pieces(
    body: bytes, spans: Sequence[tuple[int, int]], items: Sequence[int | Object]
) -> Iterator[bytes]:
    at = 0
    while at < len(items):
        first = items[at]
        at += 1
        if not isinstance(first, int):
            yield to_json(first)
            continue
        last = first
        while at < len(items) and items[at] == last + 1:
            last += 1
            at += 1
        yield body[spans[first][0] : spans[last][1]]


def _find_items(body: bytes, name: str, count: int) -> _Items | None:
    """Where the items of an array stand that has so many; None where they cannot be told apart."""
    start = _find_array(body, name)
    position, spans = start + 1, list[tuple[int, int]]()
    while start and (item := _next_item(body, position)):
        first, last, position, after = item
        spans.append((first, last))
        if after == b"]":
            return _Items(start, position, spans) if len(spans) == count else None
    return None


def _end_of_items(body: bytes, name: str) -> int:
    """Where the items of an array end, its bracket excluded; 0 where it is not the last member, or
    cannot be told.

    Of all brackets only one closes an array that begins here: what is read up to it is JSON.
    """
    start, end = _find_array(body, name), body.rfind(b"]") + 1
    if not start or body[end:].strip() != b"}" or read_json(body[start:end]) is None:
        return 0
    return end - 1


def _find_array(body: bytes, name: str) -> int:
    """Where the one member of this name begins that is an array; 0 for none, or several."""
    at = _only_key(body, name)
    if at is None:
        members = _members(body) or ()
        if any(b"\\" in member.name for member in members):
            return 0
        named = [member.value_at for member in members if member.name == name.encode()]
        at = named[0] if len(named) == 1 else 0
    return at if body[at : at + 1] == b"[" else 0


def _next_item(body: bytes, position: int) -> tuple[int, int, int, bytes] | None:
    """The ends of the item that begins here, the place behind it and its comma or bracket."""
    flat = _FLAT_ITEM.match(body, position)
    if flat is not None:
        return *flat.span(1), flat.end(), flat[2]
    space = _SPACE.match(body, position)
    start = space.end() if space else position
    end = _end_of_value(body, start)
    after = _AFTER_ITEM.match(body, end) if end else None
    return None if after is None else (start, end, after.end(), after[1])


def _with_comma(members: Sequence[_Member], index: int, *, gone: set[bytes]) -> tuple[int, int]:
    """The bytes to take out for one member: with the comma before it, or else the one after."""
    member = members[index]
    if any(earlier.name not in gone for earlier in members[:index]):
        return members[index - 1].end, member.end
    if index + 1 < len(members):
        return member.key_at, members[index + 1].key_at
    return member.key_at, member.end


def _edit(body: bytes, *, replaced: Mapping[str, Json], renamed: Mapping[str, str]) -> bytes | None:
    members = _only_members(body, {*replaced, *renamed}) or _members(body)
    if members is None:
        return None
    pieces: list[bytes] = []
    position = 0
    left = set(replaced) | set(renamed)
    for member in members:
        name = member.name.decode("utf-8", "replace")
        if b"\\" in member.name or name in (set(replaced) | set(renamed)) - left:
            return None  # spelled with escapes, or said twice
        if name not in left:
            continue
        left.discard(name)
        if name in renamed:
            pieces += (body[position : member.key_at], to_json(renamed[name]))
            position = member.key_at + len(member.name) + 2
        if name in replaced:
            pieces += (body[position : member.value_at], to_json(replaced[name]))
            position = member.end
    if left:
        return None
    pieces.append(body[position:])
    return b"".join(pieces)


def _only_members(body: bytes, names: set[str]) -> list[_Member] | None:
    """The members of these names, where no other place of the body can be meant.

    They are known to be top-level members. A name that stands there once, in quotes, before a
    colon, is that one: inside a string its quotes would be escaped, and nobody spells another one
    with escapes. Three searches instead of a walk, for bodies of hundreds of kilobytes.
    """
    members: list[_Member] = []
    for name in names:
        value_at = _only_key(body, name)
        end = _end_of_value(body, value_at) if value_at else 0
        if value_at is None or not end:
            return None
        key_at = body.find(b'"%s"' % name.encode())
        members.append(_Member(name.encode(), key_at, value_at, end))
    return sorted(members, key=lambda member: member.key_at)


def _only_key(body: bytes, name: str) -> int | None:
    """Where the value of a top-level member begins, where its name stands in one place only."""
    if rb"\u00" in body and any(escape in body for escape in _ESCAPED_LETTERS):
        return None
    quoted = b'"%s"' % name.encode()
    at = body.find(quoted)
    key = _KEY.match(body, at) if at >= 0 else None
    return None if key is None or body.rfind(quoted) != at else key.end()


def _insert(body: bytes, added: Mapping[str, Json]) -> bytes | None:
    if not added:
        return body
    brace = body.find(b"{")
    if brace < 0:
        return None
    rest = body[brace + 1 :]
    comma = b"" if rest[:64].lstrip().startswith(b"}") else b","
    return body[: brace + 1] + to_json(added)[1:-1] + comma + rest


def _rewrite(parsed: Object, due: Mapping[str, Json], renamed: Mapping[str, str]) -> bytes:
    members = {renamed.get(name, name): value for name, value in parsed.items()}
    return to_json({**members, **due})


def _members(body: bytes) -> list[_Member] | None:
    """Where the members of the object stand; None where the bytes are not what they should be."""
    position = body.find(b"{") + 1
    members: list[_Member] = []
    while position and (key := _KEY.match(body, position)):
        end = _end_of_value(body, key.end())
        after = _AFTER.match(body, end) if end > 0 else None
        if after is None:
            return None
        members.append(_Member(key[1], key.start(1) - 1, key.end(), end))
        if after[1] == b"}":
            return members
        position = after.end()
    return None


def _end_of_value(body: bytes, start: int) -> int:
    """The end of the JSON value that starts here; 0 where there is none."""
    first = body[start : start + 1]
    if first in (b"{", b"["):
        return _end_of_nested(body, start)
    match = _STRING.match(body, start) if first == b'"' else _SCALAR.match(body, start)
    return match.end() if match else 0


def _end_of_nested(body: bytes, start: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(body, start):
        depth += 1 if bracket[1] in _OPENING else -1
        if depth == 0:
            return bracket.end()
    return 0


def _says(parsed: Object, name: str, value: Json) -> bool:
    if name not in parsed:
        return False
    found = parsed[name]
    return type(found) is type(value) and bool(found == value)


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
