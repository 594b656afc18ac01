"""Errors in the OpenAI format, and in the shapes its imitators and their proxies really send.

Read, whatever it is: OpenAI's {"error": {…}}, OpenRouter's with a number for a code and the
provider's own words in `metadata.raw`, vLLM's flat {"object": "error", …}, FastAPI's {"detail": …},
Mistral's {"message": {"detail": [...]}}, {"message": …}, a list around any of them (Google), a page
of HTML, plain text, nothing at all.
"""

from __future__ import annotations

from helmdash.providers.shared.bodies import json_text, read_json, to_json
from helmdash.providers.shared.pages import LONGEST_TEXT_CHARS, visible_text
from helmdash.providers.wire import Json, Object, WireError

_NO_MESSAGE = "The upstream reported an error without a message."

# What OpenAI calls an error of each status; anything else below 500 is an invalid request.
_TYPES = {429: "rate_limit_error", 403: "permission_error", 401: "authentication_error"}


def read_error(status: int, body: bytes) -> WireError:
    """The error in a reply of a status of 400 and more. Never raises."""
    value = read_json(body)
    found = error_in(value[0] if isinstance(value, list) and value else value, is_failure=True)
    if found is not None and found.message:
        return WireError(message=found.message, code=found.code, type=found.type, status=status)
    return WireError(message=_plain_message(status, body), status=status)


def error_in(value: Json, *, is_failure: bool = False) -> WireError | None:
    """The error an object speaks of; None if it speaks of none.

    `is_failure`: it is known to be one, so that a bare `message` or `detail` counts too.
    """
    if not isinstance(value, dict):
        return WireError(message=_cut(value)) if is_failure and _is_words(value) else None
    error = value.get("error")
    if error:
        return _from_value(error, beside=value)
    if is_failure or value.get("object") == "error":
        return _flat_error(value)
    return None


def error_of_choice(choice: Object) -> WireError | None:
    """An error inside a choice, as OpenRouter has it when a provider fails midway; None for
    none."""
    error = choice.get("error")
    return _from_value(error, beside={}) if error else None


def write_error(error: WireError) -> bytes:
    """The error as OpenAI would send it."""
    return to_json({"error": error_object(error)})


def error_object(error: WireError) -> dict[str, Json]:
    """What stands under `error`. The type follows the status where the vendor gave none."""
    return {
        "message": error.message,
        "type": error.type or _type_of(error.status),
        "param": error.param,
        "code": error.code,
    }


def _from_value(error: Json, *, beside: Object) -> WireError:
    if not isinstance(error, dict):
        flat = _flat_error(beside) if not _is_words(error) else None
        return flat or WireError(message=_cut(error), code=_word(beside.get("code")))
    message = (
        _words(error.get("message")) or _words(error.get("detail")) or _cut(error) or _NO_MESSAGE
    )
    code = _word(error.get("code"))
    status = _status(code)
    # Google's numbers come with a word that says more: 429 with RESOURCE_EXHAUSTED.
    word = _word(error.get("status"))
    return WireError(
        message=_with_raw(message, error.get("metadata")),
        code=word if word is not None and (code is None or status is not None) else code,
        type=_word(error.get("type")),
        status=status,
    )


def _flat_error(value: Object) -> WireError | None:
    for name in ("message", "detail", "error_message", "msg", "title"):
        if words := _words(value.get(name)):
            code = _word(value.get("code"))
            return WireError(
                message=words, code=code, type=_word(value.get("type")), status=_status(code)
            )
    return None


def _with_raw(message: str, metadata: Json) -> str:
    """Add the provider's own words, which OpenRouter keeps beside "Provider returned error"."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    inner = error_in(read_json(raw.encode())) if isinstance(raw, str) else error_in(raw)
    words = inner.message if inner is not None else _words(raw)
    return _cut(f"{message}: {words}") if words and words not in message else message


def _words(value: Json, *, depth: int = 3) -> str | None:
    """What a member says: text, objects around it, or FastAPI's list of places and messages."""
    if isinstance(value, dict) and depth:
        inner = (_words(value.get(name), depth=depth - 1) for name in ("message", "detail", "msg"))
        return next(filter(None, inner), None)
    if isinstance(value, list):
        return _cut("; ".join(filter(None, map(_placed, value[:20])))) or None
    return _cut(value) if _is_words(value) else None


def _placed(item: Json) -> str | None:
    if not isinstance(item, dict):
        return item if isinstance(item, str) else None
    place = item.get("loc")
    message = item.get("msg") or item.get("message")
    if not isinstance(message, str):
        return None
    if not isinstance(place, list):
        return message
    return f"{'.'.join(str(step) for step in place)}: {message}"


def _plain_message(status: int, body: bytes) -> str:
    return visible_text(body) or f"The upstream answered {status} with an empty body."


def _status(code: str | None) -> int | None:
    """A code that is an HTTP status, as OpenRouter's and vLLM's are."""
    if code is None or not code.isascii() or not code.isdigit() or len(code) != 3:
        return None
    return int(code) if 400 <= int(code) <= 599 else None


def _type_of(status: int | None) -> str:
    if status is not None and status < 500:
        return _TYPES.get(status, "invalid_request_error")
    return "server_error"


def _word(value: Json) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)[:200] or None


def _is_words(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _cut(value: Json) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return text.strip()[:LONGEST_TEXT_CHARS]
