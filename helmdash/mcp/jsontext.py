"""Requests as JSON: strict, and never so deep that they could not be given back."""

from __future__ import annotations

from typing import Any

import orjson

from helmdash.shapes.jsontext import MAX_DEPTH, BadJson, is_shallow

# Levels that orjson writes; pydantic, which the SDK writes with, goes one deeper.
_DEEPEST_WRITTEN = 254


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object of a body. No NaN, no lone surrogates. Raises BadJson."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BadJson("The body has to be one JSON-RPC object.")
    # Lists around it make what is too deep for orjson our own limit.
    packed: object = value
    for _ in range(_DEEPEST_WRITTEN - MAX_DEPTH):
        packed = [packed]
    if not is_shallow(packed):
        raise BadJson(f"The body is nested more than {MAX_DEPTH} levels deep.")
    return value
