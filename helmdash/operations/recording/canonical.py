"""Canonical JSON (core.text.messages) by a faster writer, for every message of every call."""

from __future__ import annotations

import orjson

from helmdash.core.text.messages import canonical_bytes


def canonical(value: object) -> bytes:
    """What `canonical_bytes` gives, in a tenth of the time."""
    if _is_plain(value):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            pass  # a whole number beyond 64 bits, a lone surrogate, a key that is no text
    return canonical_bytes(value)


def _is_plain(value: object) -> bool:
    """Whether every writer of JSON writes the value alike: numbers with a point differ."""
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bool:
        return True
    if kind is dict:
        return all(map(_is_plain, value.values()))  # type: ignore[attr-defined]
    return kind in (list, tuple) and all(map(_is_plain, value))  # type: ignore[call-overload]
