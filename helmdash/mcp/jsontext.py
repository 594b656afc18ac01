"""JSON in and out: strict, and never so deep that it could not be given back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson

# What is accepted has to fit into an answer: orjson writes 254 levels, pydantic (which the SDK
# writes with) 255. As deep as the JSON API goes.
MAX_DEPTH = 200
_DEEPEST_WRITTEN = 254


class BadJson(ValueError):
    """The text is not JSON that we accept; the message says why."""


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object of a body. No NaN, no lone surrogates. Raises BadJson."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BadJson("The body has to be one JSON-RPC object.")
    if not _is_shallow(value):
        raise BadJson(f"The body is nested more than {MAX_DEPTH} levels deep.")
    return value


def dump(value: object) -> str:
    """Compact JSON; times are RFC 3339 in UTC with a Z."""
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()
    except orjson.JSONEncodeError:  # whole numbers of more than 64 bits, which catalogs may have
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _is_shallow(value: object) -> bool:
    # orjson refuses what is too deep for it, quickly; the lists around make that our own limit.
    for _ in range(_DEEPEST_WRITTEN - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"not JSON: {type(value).__name__}")
