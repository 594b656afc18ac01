"""JSON of values that came from anywhere, without loss where orjson alone would lose something."""

from __future__ import annotations

import json
import re

import orjson

from helmdash.core.text.jsontext import TooDeep, is_too_deep, replace_lone_surrogates, write_json
from helmdash.providers.wire import Json

# From here on a whole number may need more than 64 bits.
_LONG_NUMBER = re.compile(r"\d{19}")


def from_json(text: str) -> Json:
    """Read JSON and keep long whole numbers exact; orjson makes floats of them.

    Raises ValueError for what is no JSON, and TooDeep, which is one.
    """
    value = orjson.loads(text)
    if is_too_deep(text):
        raise TooDeep("nested too deeply")
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def read_exactly(body: bytes) -> Json:
    """The same of a reply, in which half of a character becomes U+FFFD (shared.bodies.read_json).

    Raises as `from_json` does.
    """
    text = body.decode()
    try:
        return from_json(text)
    except orjson.JSONDecodeError:
        return from_json(replace_lone_surrogates(text))


def to_json(value: Json) -> bytes:
    """Compact JSON. Raises TooDeep.

    orjson refuses whole numbers over 64 bits and lone surrogates; clients send them, and the
    standard library writes them. It also refuses more than 254 levels, and so does this.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return write_json(value).encode()
