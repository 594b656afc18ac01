"""JSON of values that came from anywhere, without loss where orjson alone would lose something."""

from __future__ import annotations

import json
import re

import orjson

from helmdash.providers.wire import Json

# From here on a whole number may need more than 64 bits.
_LONG_NUMBER = re.compile(r"\d{19}")


def from_json(text: str) -> Json:
    """Read JSON and keep long whole numbers exact; orjson makes floats of them.

    Raises ValueError for what is no JSON, RecursionError for a thousand levels of it.
    """
    value = orjson.loads(text)
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def to_json(value: Json) -> bytes:
    """Compact JSON. Raises RecursionError for a value nested about a thousand deep.

    orjson refuses whole numbers over 64 bits, lone surrogates and more than 254 levels; clients
    send them, and the standard library writes them.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()
