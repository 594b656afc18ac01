"""JSON in and out: orjson where it can, the standard library where it must.

orjson turns whole numbers of more than 64 bits into floats and cannot write them. A catalog with
such a number has to come back as it was given, so those (rare) texts go through `json`. Elsewhere
they become floats, as in every client that reads JSON numbers as doubles.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from datetime import datetime

import orjson

from helmdash.answers import members, rfc3339
from helmdash.core.text.encodings import encoding_fault

# Any whole number that may need more than 64 bits has at least this many digits.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
# Dataclasses leave as they declare themselves (helmdash.answers).
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS
# orjson writes at most 254 levels; what we accept must be possible to give back, inside an answer
# or inside a request to an upstream. Every door has this limit (`find_too_deep`).
MAX_DEPTH = 200
_DEEPEST_WRITTEN = 254
# Enough to name the member; what is nested deeply repeats itself.
_PATH_CHARS = 64


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
        if is_about_depth(error):
            raise BadJson(f"nested more than {MAX_DEPTH} levels deep") from None
        if text.startswith(codecs.BOM_UTF8):
            why = ": it begins with a byte order mark; send it without"
        elif fault := encoding_fault(text):
            why = f": {fault}; send UTF-8"
        else:
            why = f" at line {error.lineno} column {error.colno}"
        raise BadJson(f"not valid JSON{why}") from None
    except (RecursionError, ValueError):
        # json's own limits: nesting, and numbers of thousands of digits.
        raise BadJson("not valid JSON: nested too deeply, or a number too long") from None


def dump_json(value: object) -> bytes:
    """Compact UTF-8 JSON; dataclasses as they declare it, times RFC 3339 in UTC with a Z.

    A lone half of a surrogate pair, which UTF-8 cannot write, leaves as U+FFFD.
    """
    if hasattr(value, "__dataclass_fields__"):
        value = members(value)  # before orjson asks for it: half a microsecond less
    try:
        return orjson.dumps(value, option=_OPTIONS, default=_plain)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
        return _to_utf8(text)


def is_about_depth(error: json.JSONDecodeError) -> bool:
    """Whether orjson gave a text up because of its depth, about five times MAX_DEPTH."""
    return "depth limit" in error.msg or "recursion limit" in error.msg


def is_shallow(value: object) -> bool:
    """Whether orjson can write the value, which is a cheap way to know that it is not too deep."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def find_too_deep(text: bytes, value: object) -> str | None:
    """The path of what is nested more than MAX_DEPTH levels deep in a read JSON text, such as
    `metadata.a.a`; None where nothing is. `value` is what `text` says, read by orjson.
    """
    # Each level takes a bracket and its partner. To write the value again is faster than to count
    # brackets: a fifth, for a batch of 276 kB.
    if len(text) <= 2 * MAX_DEPTH or _is_within_depth(value):
        return None
    return _deep_path(value)


def _is_within_depth(value: object) -> bool:
    """In C, by what orjson still writes: a walk in Python takes longer than reading the text."""
    packed = value
    for _ in range(_DEEPEST_WRITTEN - MAX_DEPTH):
        packed = [packed]
    return is_shallow(packed)


def _deep_path(value: object) -> str | None:
    pending: list[tuple[object, str, int]] = [(value, "", 1)]
    while pending:
        here, path, depth = pending.pop()
        if not isinstance(here, dict | list):
            continue
        if depth > MAX_DEPTH:
            return path if len(path) <= _PATH_CHARS else path[: _PATH_CHARS - 1] + "…"
        members = here.items() if isinstance(here, dict) else enumerate(here)
        for name, member in members:
            # Long enough to be cut, and no longer: paths of paths would take a square of the depth.
            inside = f"{path}.{name}"[: _PATH_CHARS + 1] if path else str(name)[:_PATH_CHARS]
            pending.append((member, inside, depth + 1))
    return None


def _to_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _plain(value: object) -> object:
    """What neither orjson nor json writes by itself. Raises TypeError for what is no JSON."""
    if isinstance(value, datetime):
        return rfc3339(value)
    return dict(value) if isinstance(value, Mapping) else members(value)
