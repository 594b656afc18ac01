"""Errors of the Responses API: a refusal is OpenAI's, a response that failed holds its own."""

from __future__ import annotations

from helmdash.providers.openai.errors import read_error, write_error
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.wire import Json, Object, WireError

__all__ = ["error_in_response", "error_of_event", "read_error", "response_error", "write_error"]

_NO_MESSAGE = "The upstream reported an error without a message."
_SERVER_ERROR = "server_error"


def error_in_response(response: Object) -> WireError | None:
    """The error of a response that failed; None for any other."""
    error = object_in(response, "error")
    if error is None and response.get("status") != "failed":
        return None
    return _error(error or {})


def error_of_event(event: Object) -> WireError:
    """What an `error` event says; some servers put it one level down."""
    return _error(object_in(event, "error") or event)


def response_error(error: WireError) -> dict[str, Json]:
    """What stands under `error` in a response that failed."""
    return {"code": error.code or _SERVER_ERROR, "message": error.message}


def _error(said: Object) -> WireError:
    kind = text_in(said, "type")
    return WireError(
        message=text_in(said, "message") or _NO_MESSAGE,
        code=text_in(said, "code"),
        type=kind if kind != "error" else None,
    )
