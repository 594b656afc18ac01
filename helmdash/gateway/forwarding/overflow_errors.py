"""An upstream's error in words that a client of another format acts on."""

from __future__ import annotations

from dataclasses import replace

from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.wire import WireError

# What agents look for before they shorten their prompt: OpenAI's code. Of the other vendors only
# the message says it, and the gateway hands that on.
_OVERFLOW = "context_length_exceeded"
_TOO_LARGE = (400, 413)


def is_overflow(error: WireError) -> bool:
    """Whether an upstream refuses a request because it does not fit."""
    return kind_of_error(error.code, error.message) is ErrorKind.CONTEXT


def normalise_overflow_error(error: WireError) -> WireError:
    """The same error; one that means "the prompt does not fit" says so in its code, too."""
    if not is_overflow(error) or error.status not in _TOO_LARGE:
        return error
    return replace(error, code=_OVERFLOW, type="invalid_request_error", status=400)


def is_json_body(data: bytes) -> bool:
    """Whether an SDK can read an error body; a page of HTML from a proxy it cannot."""
    return isinstance(read_json(data), dict | list)
