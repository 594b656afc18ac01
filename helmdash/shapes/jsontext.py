"""JSON in and out: orjson where it can, the standard library where it must.

orjson turns whole numbers of more than 64 bits into floats and cannot write them. A catalog with
such a number has to come back as it was given, so those (rare) texts go through `json`. Elsewhere
they become floats, as in every client that reads JSON numbers as doubles.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import orjson

# Any whole number that may need more than 64 bits has at least this many digits.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_OPTIONS = orjson.OPT_UTC_Z
# orjson writes at most 254 levels; what we accept must be possible to give back, inside an answer.
MAX_DEPTH = 200


class BadJson(ValueError):
    """The text is not JSON; the message says where, in our words."""


def load_json(text: bytes, *, exact: bool = False) -> object:
    """Read strict JSON (no NaN, no lone surrogates, valid UTF-8). Raises BadJson.

    exact: keep whole numbers of any size; looking for them costs more than reading the rest.
    """
    try:
        value: object = orjson.loads(text)
        return json.loads(text) if exact and _LONG_NUMBER.search(text) else value
    except json.JSONDecodeError as error:  # orjson's error is one, too
        raise BadJson(f"not valid JSON at line {error.lineno} column {error.colno}") from None
    except (RecursionError, ValueError):
        # json's own limits: nesting, and numbers of thousands of digits.
        raise BadJson("not valid JSON: nested too deeply, or a number too long") from None


def dump_json(value: object) -> bytes:
    """Compact UTF-8 JSON; times are RFC 3339 in UTC with a Z.

    A lone half of a surrogate pair, which UTF-8 cannot write, leaves as U+FFFD.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
        return _to_utf8(text)


def is_shallow(value: object) -> bool:
    """Whether orjson can write the value, which is a cheap way to know that it is not too deep."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def _to_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"not JSON: {type(value).__name__}")
