"""Ollama's errors, both ways: {"error": "…"}, also as a line of a stream that began with a 200."""

from __future__ import annotations

import orjson

from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.pages import visible_text
from helmdash.providers.wire import (
    UNDECODABLE_REPLY,
    Object,
    WireError,
)

# A page of HTML from a proxy is cut to its beginning.
_LONGEST_MESSAGE = 2000


def undecodable() -> WireError:
    """The error of a body that is none of Ollama's."""
    return WireError(message="Ollama's reply is not JSON as expected.", code=UNDECODABLE_REPLY)


def find_error(value: Object, *, status: int | None = None) -> WireError | None:
    """The error of a body or a line; None where it has none."""
    error = value.get("error")
    if isinstance(error, dict):  # as Ollama's OpenAI-shaped API and proxies write it
        error = error.get("message") or error.get("error")
    if not isinstance(error, str) or not error:
        return None
    return WireError(message=error[:_LONGEST_MESSAGE], status=status)


def read_error(status: int, body: bytes) -> WireError:
    """The error of a body, whatever it is. Never raises."""
    value = read_json(body)
    found = find_error(value, status=status) if isinstance(value, dict) else None
    if found is not None:
        return found
    text = visible_text(body)[:_LONGEST_MESSAGE]
    return WireError(message=text or f"Ollama answered {status}.", status=status)


def write_error(error: WireError) -> bytes:
    """An error body, or the last line of a stream."""
    return orjson.dumps({"error": error.message})
