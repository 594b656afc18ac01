"""Captures as JSON and back: how a call waits in the spool.

Only what was told is written (None is left out), so that a line is little longer than the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, gt
from typing import Any, assert_never, cast, get_type_hints

import orjson
from django.db import models

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.core.calls.composition import Composition
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.calls.tool_schemas import OfferedTools
from helmdash.core.conversations.fingerprints import ChainLinks
from helmdash.core.text.tokens import utf8_bytes
from helmdash.records.models import Call, CallName, Conversation
from helmdash.records.statements.column_values import storable

_NAMES = tuple(field.name for field in fields(Capture) if field.name != "beside")
# How JSON writes U+0000, which PostgreSQL stores nowhere.
_NUL = b"\\u0000"
_KNOWN = frozenset(_NAMES)
_MOST_INT = 2**63 - 1
# No count comes near, and what is reckoned from it still has a column's room.
_MOST_COUNT = 2**53


_TYPES = get_type_hints(Capture)
# Words whose column has another name; what is said of an error is cut when it is masked.
_COLUMNS: Mapping[str, tuple[type[models.Model], str]] = {
    "id": (Call, "name"),
    "conversation": (Conversation, "name"),
    "parent": (Conversation, "parent"),
    "context": (Conversation, "context"),
    "finish_reason": (Call, "finish_reason_raw"),
    "fit_id": (Call, "fit_name"),
    "kept_reply_id": (CallName, "name"),
}
_COLUMNLESS = ("error_message", "content", "unusable", "budget_model", "trial", "reply_id")


def _most_chars(name: str) -> int:
    table, column = _COLUMNS.get(name, (Call, name))
    return int(cast("Any", table._meta.get_field(column)).max_length)


def _named(*kinds: object) -> tuple[str, ...]:
    return tuple(name for name in _NAMES if _TYPES[name] in kinds)


# Words of a capture and the room their columns have.
_ROOM: Mapping[str, int] = {
    name: _most_chars(name) for name in _named(str, str | None) if name not in _COLUMNLESS
}
_WORDS, _ROOMS = tuple(_ROOM.items()), tuple(_ROOM.values())
_words_of = attrgetter(*_ROOM)
_all_of = attrgetter(*_NAMES)
_COUNTS = tuple(name for name in _named(int | None, float | None) if name != "http_status")
_counts_of = attrgetter(*_COUNTS)
# The column is a smallint; nothing beyond three digits is a status.
_MOST_STATUS = 999
_MOST_ATTEMPTS = 2**31 - 1
# orjson writes 254 levels, and a capture stands inside a line.
_MOST_LEVELS = 250
_TOO_DEEP = "[not stored: nested too deeply]"
# What a bare capture keeps of counts, which an upstream may name as it likes, and of an error.
_MOST_COUNTS, _MOST_NAME_CHARS = 40, 64
_MOST_ERROR_CHARS = 2_000
NOT_STORED = "not_stored"


def make_storable(capture: Capture) -> Capture:
    """The capture with its words cut to their columns and impossible numbers left out.

    For captures nobody has validated: a provider may name its finish reason as it likes. Costs
    next to nothing where nothing is wrong. Texts are seen to by `dump_capture`.
    """
    wrong: dict[str, Any] = {}
    words, counts = _words_of(capture), _counts_of(capture)
    # Nearly always nothing is wrong: that is found out in C, and the rest looks for what it is.
    sizes = [0 if text is None else len(text) for text in words]
    if any(map(gt, sizes, _ROOMS)):
        for (name, room), text in zip(_WORDS, words, strict=True):
            if text is not None and len(text) > room:
                wrong[name] = text[:room]
    if [number for number in counts if number is not None and not 0 <= number <= _MOST_COUNT]:
        for name, number in zip(_COUNTS, counts, strict=True):
            if number is not None and not 0 <= number <= _MOST_COUNT:
                wrong[name] = None
    if capture.sent is not None and not _is_possible(capture.sent):
        wrong["sent"] = None
    if capture.composition is not None and not _is_possible(capture.composition):
        wrong["composition"] = None
    if capture.trim is not None and not _is_possible(capture.trim):
        wrong["trim"] = None
    status = capture.http_status
    if status is not None and not 0 <= status <= _MOST_STATUS:
        wrong["http_status"] = None
    if capture.attempt > _MOST_ATTEMPTS:
        wrong["attempt"] = _MOST_ATTEMPTS
    return replace(capture, **wrong) if wrong else capture


def _is_possible(sizes: SentSizes | CapturedTrim | Composition) -> bool:
    told: tuple[int | None, ...]
    match sizes:
        case SentSizes():
            told = (sizes.bytes, sizes.messages, sizes.tools_bytes, sizes.images)
        case Composition():
            told = (*sizes.counts, *sizes.results_by_tool.values())
        case CapturedTrim():
            told = (sizes.before_bytes, sizes.after_bytes)
        case _:
            assert_never(sizes)
    return not [size for size in told if size is not None and not 0 <= size <= _MOST_COUNT]


def dump_capture(capture: Capture) -> tuple[Capture, bytes]:
    """The capture as one line of JSON, and the capture as it can be stored.

    The two say the same: U+FFFD stands where the texts held NUL or half of a surrogate pair, and
    a remark where values were nested deeper than JSON writers go. Whatever the capture holds, there
    is a line.
    """
    line = _line(_told(capture))
    if line is not None:
        return capture, line
    told = cast("dict[str, object]", _mended(_told(capture), _MOST_LEVELS))
    line = orjson.dumps(told)
    return load_capture(told), line


def dump_figures(capture: Capture) -> bytes | None:
    """The line of the capture without what was said, as `dump_capture` would write it; None where
    something has to be mended first."""
    told = _told(capture)
    told.pop("messages", None)
    content = told.pop("content", None)
    if content is not None and capture.raw_content_len is None:
        told["raw_content_len"] = _length(capture)  # whether a reply was empty is judged by it
    return _line(told)


def text_line(text: str) -> bytes | None:
    """A text as it stands in a line; None where it has to be mended first."""
    return _line(text)


def _line(told: object) -> bytes | None:
    try:
        line = orjson.dumps(told, default=_plain)
    except (orjson.JSONEncodeError, TypeError):
        return None
    return None if _NUL in line else line


def load_capture(told: Mapping[str, Any]) -> Capture:
    """The capture of a line. Raises TypeError, ValueError or KeyError when it is not one."""
    given = {name: value for name, value in told.items() if name in _KNOWN}
    for name, convert in _CONVERSIONS:
        if name in given:
            given[name] = convert(given[name])
    return Capture(**given)


def has_texts(capture: Capture) -> bool:
    """It holds what was said."""
    return capture.messages is not None or capture.content is not None


def without_texts(capture: Capture) -> Capture:
    """The capture without what was said, for a spool that is running full; the figures stay."""
    return replace(capture, messages=None, content=None)


def bare_capture(capture: Capture, *, why: str) -> Capture:
    """The capture with its words and figures alone: no texts, and nothing that anybody nested.

    For a call that no database takes, or no file has room for, as it is: better than none. `why`
    is told in its metadata, under `not_stored`.
    """
    counts = [
        (name[:_MOST_NAME_CHARS], count)
        for name, count in (capture.usage or {}).items()
        if type(count) is int and 0 <= count <= _MOST_INT
    ]
    return replace(
        without_texts(capture),
        usage=dict(counts[:_MOST_COUNTS]) if capture.usage is not None else None,
        # The content told its length.
        raw_content_len=_length(capture),
        error_message=(capture.error_message or "")[:_MOST_ERROR_CHARS] or None,
        unusable=None,
        trim=None,
        composition=None,
        offered=None,
        attempts=(),
        metadata={NOT_STORED: why},
    )


def _length(capture: Capture) -> int | None:
    if capture.raw_content_len is not None or capture.content is None:
        return capture.raw_content_len
    return utf8_bytes(capture.content)


def _told(capture: Capture) -> dict[str, object]:
    values = zip(_NAMES, _all_of(capture), strict=False)  # of one length by their making
    return {name: value for name, value in values if value is not None}


def _plain(value: object) -> object:
    """What orjson does not know but JSON can hold."""
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _mended(value: Any, levels: int) -> Any:
    """The same with only what JSON and both databases can hold; dates and parts become plain."""
    match value:
        case datetime():
            return value.isoformat()
        case bool() | None:
            return value
        case int():
            # JSON numbers beyond 64 bits are doubles to most readers; beyond those, nothing.
            return value if abs(value) <= _MOST_INT else _as_float(value)
        case str() | float():
            return storable(value)
        case _ if levels == 0:
            return _TOO_DEEP
        case CapturedTrim() | SentSizes() | Composition() | OfferedTools() | ChainLinks():
            named = {field.name: getattr(value, field.name) for field in fields(value)}
            return _mended(named, levels)
        case Mapping():
            return {storable(str(key)): _mended(item, levels - 1) for key, item in value.items()}
        case list() | tuple():
            return [_mended(item, levels - 1) for item in value]
        case _:
            return storable(str(value))


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _part(kind: type[Any]) -> Callable[[Mapping[str, Any]], Any]:
    names = {field.name for field in fields(kind)}

    def load(told: Mapping[str, Any]) -> Any:
        return kind(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in told.items()
                if name in names
            }
        )

    return load


def _routes(told: Sequence[str]) -> tuple[CallRoute, ...]:
    """A line of a newer release may hold a route that is not known here."""
    return _known_routes(tuple(told))


@lru_cache(maxsize=64)
def _known_routes(told: tuple[str, ...]) -> tuple[CallRoute, ...]:
    return tuple(route for route in CallRoute if route.value in told)


_CONVERSIONS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("started_at", _time),
    ("trim", _part(CapturedTrim)),
    ("sent", _part(SentSizes)),
    ("composition", _part(Composition)),
    ("offered", _part(OfferedTools)),
    ("lane", Lane),
    ("routes", _routes),
    ("also_known", tuple),
    ("inside", tuple),
    ("links", _part(ChainLinks)),
    ("messages", tuple),
    ("attempts", tuple),
)
