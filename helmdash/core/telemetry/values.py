"""What an exporter sends, in no encoding's shape: spans and log records with plain attributes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from helmdash.core.calls.usage import LARGEST_COUNT

Attributes = Mapping[str, object]
"""Text, bool, int, float, and lists and mappings of them; None for a value that says nothing."""

# A count or a duration that is written as text; more digits are no count.
_MOST_DIGITS = 19
# JSON within an attribute; whole prompts may be in there, and nobody reads further.
_JSON_CHARS = 1_000_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A clock outside of these years is broken (helmdash.doors.bodies.fields has the same).
_FIRST_YEAR, _LAST_YEAR = 2000, 2100


@dataclass(frozen=True, slots=True)
class Exporter:
    """Who exports: the library that made the records, and the program it is part of."""

    scope: str = ""
    version: str = ""
    resource: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. Ids in small hexadecimals, parent_id "" for none; times in ns since 1970, 0: not
    told. error: its status says so. exception: the attributes of its newest exception event."""

    source: Exporter
    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    is_client: bool = False
    start_ns: int = 0
    end_ns: int = 0
    attributes: Attributes = field(default_factory=dict)
    error: bool = False
    message: str = ""
    exception: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One log record. name: of its event, "" for none; body: only a text is kept of it."""

    source: Exporter
    trace_id: str = ""
    span_id: str = ""
    name: str = ""
    time_ns: int = 0
    body: str = ""
    attributes: Attributes = field(default_factory=dict)


def count_of(value: object) -> int | None:
    """A whole number from 0 on, also one written as text, as several exporters do; None: none.

    >>> count_of("12"), count_of(12.0), count_of(-1), count_of(True)
    (12, 12, None, None)
    """
    if type(value) is int:
        return value if 0 <= value <= LARGEST_COUNT else None
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
            return None
        return count_of(int(text))
    if isinstance(value, float) and value.is_integer():
        return count_of(int(value))
    return None


def number_of(value: object) -> float | None:
    """A number from 0 on, also one written as text; None: none."""
    if isinstance(value, str) and len(value) <= _MOST_DIGITS:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # The largest that a float holds exactly; an int beyond cannot become one.
    return float(value) if 0 <= value <= LARGEST_COUNT and not math.isnan(value) else None


def word_of(value: object, most: int) -> str | None:
    """One line of at most so many characters; None where nothing is told.

    >>> word_of(" gpt-4o ", 255), word_of("  ", 9), word_of(3, 9)
    ('gpt-4o', None, None)
    """
    if not isinstance(value, str):
        return None
    return _CONTROL.sub(" ", _whole(value[: 4 * most])).strip()[:most].strip() or None


def text_of(value: object, most: int) -> str | None:
    """A text of at most so many characters, on several lines; None where nothing is told."""
    if not isinstance(value, str):
        return None
    return _whole(value[:most]).replace("\x00", "").strip() or None


def _whole(text: str) -> str:
    """The text without halves of characters, which JSON within an attribute may have."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def first_present(attributes: Attributes, names: Iterable[str]) -> object:
    """The value of the first name that has one; None: none has. A blank text is none."""
    for name in names:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def first_count(attributes: Attributes, names: Iterable[str]) -> int | None:
    """The count of the first name that has a value; None where it has none, or is no count."""
    return count_of(first_present(attributes, names))


def parsed(value: object) -> object:
    """What a JSON text in an attribute says; any other value as it is, and a text that is no JSON
    as it is."""
    if not isinstance(value, str) or not 0 < len(value) <= _JSON_CHARS or value[0] not in '{["':
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def mapping_of(value: object) -> Attributes:
    """An object, also one that is written as JSON; empty for anything else."""
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


def moment_of(nanoseconds: int) -> datetime | None:
    """A moment; None for 0 and for one that no good clock tells."""
    if nanoseconds <= 0:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return None
    return moment if _FIRST_YEAR <= moment.year < _LAST_YEAR else None


def nanoseconds_of(value: object) -> int:
    """The moment of an `event.timestamp` (ISO 8601) in ns since 1970; 0: none."""
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return 0
    try:
        moment = datetime.fromisoformat(value.strip().upper())
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return max((since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000, 0)
