"""Requests as JSON: strict, and never so deep that they could not be given back."""

from __future__ import annotations

from typing import Any

import orjson

from helmdash.shapes.jsontext import MAX_DEPTH, BadJson, find_too_deep, is_about_depth


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object of a body. No NaN, no lone surrogates. Raises BadJson."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if is_about_depth(error):
            raise BadJson(f"The body is nested more than {MAX_DEPTH} levels deep.") from None
        raise BadJson(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise BadJson("The body has to be one JSON-RPC object.")
    deep = find_too_deep(text, value)
    if deep is not None:
        raise BadJson(f"{deep}: must not be nested more than {MAX_DEPTH} levels deep.")
    return value
