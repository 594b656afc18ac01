"""Gemini's errors (google.rpc.Status as JSON), both ways.

Source: https://ai.google.dev/gemini-api/docs/troubleshooting and google/rpc/error_details.proto.
An error is `{"error": {"code", "message", "status", "details"}}`; a stream that is no event stream
has it as the one element of an array.
"""

from __future__ import annotations

import re

import orjson

from helmdash.providers.shared.bodies import read_json
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.pages import visible_text
from helmdash.providers.shared.reported import objects_in
from helmdash.providers.wire import UNDECODABLE_REPLY, Json, Object, WireError

# google.rpc.Code, by the HTTP status each is sent with.
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",  # Anthropic, overloaded
}
_WORDS = frozenset(_STATUSES.values()) | {"FAILED_PRECONDITION", "OUT_OF_RANGE", "UNKNOWN"}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
# A protobuf duration: "58s", "0.5s".
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
# A page of HTML from a proxy is cut to its beginning.
_LONGEST_MESSAGE = 2000


def write_error(error: WireError) -> bytes:
    """An error body as Google would send it. Our own code goes into an ErrorInfo."""
    return orjson.dumps(error_object(error))


def error_object(error: WireError) -> dict[str, Json]:
    """The same as an object, for a stream."""
    code = error.status or 500
    own_word = error.code if error.code in _WORDS else None
    fallback = "INVALID_ARGUMENT" if 400 <= code < 500 else "INTERNAL"
    details: list[Json] = []
    if error.code and own_word is None:
        details.append({"@type": _ERROR_INFO, "reason": error.code, "domain": "helmdash"})
    if error.retry_after_s is not None:
        details.append({"@type": _RETRY_INFO, "retryDelay": f"{error.retry_after_s:g}s"})
    body = without_nones(
        code=code,
        message=error.message,
        status=own_word or _STATUSES.get(code, fallback),
        details=details or None,
    )
    return {"error": body}


def read_error(status: int, body: bytes) -> WireError:
    """The error of a body, whatever it is. Never raises."""
    error = find_error(read_json(body))
    if error is None:
        text = visible_text(body)[:_LONGEST_MESSAGE]
        return WireError(message=text or f"Gemini answered {status}.", status=status)
    return error_of(error, status=status)


def undecodable() -> WireError:
    """The error of a body that is none of Gemini's."""
    return WireError(message="Gemini's reply is not JSON as expected.", code=UNDECODABLE_REPLY)


def find_error(value: Json) -> Object | str | None:
    """What stands under `error`, in an object or in an array's first element; None for none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    return error if isinstance(error, dict | str) and error else None


def error_of(error: Object | str, *, status: int | None = None) -> WireError:
    """Read an error object; `status` is the HTTP status, None where it came inside a stream."""
    if isinstance(error, str):
        return WireError(message=error[:_LONGEST_MESSAGE], status=status)
    code, word, message = error.get("code"), error.get("status"), error.get("message")
    word = word if isinstance(word, str) and word else None
    said = message if isinstance(message, str) and message else word or "An error of no message."
    details = objects_in(error, "details")
    reasons = [item.get("reason") for item in details]
    return WireError(
        message=said[:_LONGEST_MESSAGE],
        code=word,
        type=next((reason for reason in reasons if isinstance(reason, str)), None),
        status=status if status is not None else _http_status(code),
        retry_after_s=next(filter(None, map(_delay, details)), None),
    )


def _http_status(code: Json) -> int | None:
    is_status = isinstance(code, int) and not isinstance(code, bool) and 100 <= code < 600
    return code if is_status else None


def _delay(detail: Object) -> float | None:
    delay = detail.get("retryDelay")
    match = _DURATION.fullmatch(delay) if isinstance(delay, str) else None
    return float(match[1]) if match else None
