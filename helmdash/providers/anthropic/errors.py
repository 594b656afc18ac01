"""Errors as the Messages API words them, both ways (platform.claude.com/docs/en/api/errors).

`type` and `code` of a `WireError` both hold Anthropic's error type, except where the error names
a finer `details.error_code`: then that is the code.
"""

from __future__ import annotations

import orjson

from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.providers.anthropic.exact_json import to_json
from helmdash.providers.shared.pages import visible_text
from helmdash.providers.shared.reported import object_in, text_in
from helmdash.providers.wire import Json, WireError

_TYPE_OF_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUS_OF_TYPE = {kind: status for status, kind in _TYPE_OF_STATUS.items()}

# For an error without a status, as inside a stream, by what its words are about.
_TYPE_OF_KIND = {
    ErrorKind.CONTEXT: "invalid_request_error",
    ErrorKind.REQUEST: "invalid_request_error",
    ErrorKind.SAFETY: "invalid_request_error",
    ErrorKind.QUOTA: "billing_error",
    ErrorKind.RATE: "rate_limit_error",
    ErrorKind.AUTH: "authentication_error",
    ErrorKind.MODEL: "not_found_error",
    ErrorKind.TIMEOUT: "timeout_error",
    ErrorKind.OVERLOADED: "overloaded_error",
}
_FALLBACK_TYPE = "api_error"

# By these codes the official SDKs know to send the whole conversation.
_OF_THREADS = "thread_"

# A proxy's HTML page says what it has to say at its top.
_LONGEST_MESSAGE = 1000


def write_error(error: WireError) -> bytes:
    """The body of an error answer. The request's id is the gateway's to send, as a header."""
    return to_json({**error_event(error), "request_id": None})


def error_event(error: WireError) -> dict[str, Json]:
    """The error as an object; inside a stream it is the data of `event: error`."""
    told: dict[str, Json] = {"type": _type_of(error), "message": error.message}
    if (error.code or "").startswith(_OF_THREADS):
        told["details"] = {"error_code": error.code}
    return {"type": "error", "error": told}


def read_error(status: int, body: bytes) -> WireError:
    """The error of a status of 400 and more, whatever its body is. Never raises."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if isinstance(parsed, dict):
        error = error_of(parsed, status=status)
        if error is not None:
            return error
    text = visible_text(body)[:_LONGEST_MESSAGE]
    return WireError(
        message=text or f"The upstream answered {status} without a body.", status=status
    )


def error_of(body: dict[str, Json], *, status: int | None = None) -> WireError | None:
    """The error in a JSON object, in Anthropic's shape or a near one; None where it has none."""
    inner = body.get("error")
    if isinstance(inner, dict):
        return _from_object(inner, status=status)
    # Proxies and servers that only look like Anthropic: {"error": "..."}, {"detail": "..."}.
    for name in ("error", "message", "detail"):
        text = body.get(name)
        if isinstance(text, str) and text and (name == "error" or status is not None):
            return WireError(message=text, status=status)
    if body.get("type") == "error":
        return WireError(message="The upstream reports an error without a message.", status=status)
    return None


def _from_object(inner: dict[str, Json], *, status: int | None) -> WireError:
    kind = text_in(inner, "type")
    code = text_in(object_in(inner, "details") or {}, "error_code")
    return WireError(
        message=text_in(inner, "message") or kind or "The upstream reports an error.",
        code=code or kind or text_in(inner, "code"),
        type=kind,
        status=status if status is not None else _STATUS_OF_TYPE.get(kind or ""),
    )


def _type_of(error: WireError) -> str:
    """Anthropic's own word if the error has one, else by status, else by its words."""
    # OpenAI has this one of Anthropic's for any 4xx, a wrong key and an unknown model too.
    is_of_both = error.type == "invalid_request_error" and error.status in _TYPE_OF_STATUS
    if error.type in _STATUS_OF_TYPE and not is_of_both:
        return error.type
    if error.status is not None and error.status >= 400:
        return _type_of_status(error.status)
    kind = kind_of_error(error.code or error.type, error.message)
    return _TYPE_OF_KIND.get(kind, _FALLBACK_TYPE) if kind is not None else _FALLBACK_TYPE


def _type_of_status(status: int) -> str:
    if status in _TYPE_OF_STATUS:
        return _TYPE_OF_STATUS[status]
    # The vendor uses this type for the other 4xx as well.
    return "invalid_request_error" if 400 <= status < 500 else _FALLBACK_TYPE
