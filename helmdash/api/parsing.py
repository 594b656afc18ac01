"""Reading Django's requests: the body once, validated once (doors.validation), every fault named.

Known members are checked to the letter and unknown ones refused, since a misspelt member that is
dropped in silence is data lost. Free objects (usage, metadata, messages, catalogs) are carried as
they are; only what PostgreSQL cannot store is refused in them: the character U+0000.
"""

from __future__ import annotations

import re
from typing import TypeVar

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, RawPostDataException, UnreadablePostError

from helmdash import conf
from helmdash.api.problems import (
    Code,
    FieldFault,
    Problem,
    invalid,
    invalid_field,
    problem_of_fault,
)
from helmdash.core.calls.capture import CONVERSATION_CHARS, CONVERSATION_PATTERN
from helmdash.doors import validation
from helmdash.doors.bodies.fields import PATTERN_SENTENCES
from helmdash.doors.bodies.jsontext import find_too_deep
from helmdash.doors.faults import BadBody, BodyTooLarge
from helmdash.doors.validation import BadFields, Shape, faults_of, unstorable

__all__ = [
    "Shape",
    "faults_of",
    "read_body",
    "read_json",
    "read_query",
    "refuse_query",
    "require_conversation_id",
    "unstorable",
    "validate",
]

Value = TypeVar("Value")


# How JSON spells U+0000: one fast search of the raw body decides whether to look closer.
_NUL_ESCAPE = b"\\u0000"
_CONVERSATION_ID = re.compile(CONVERSATION_PATTERN)


def read_body(
    request: HttpRequest, shape: Shape[Value], *, exact: bool = False, is_optional: bool = False
) -> Value:
    """The JSON body as `shape` wants it. Raises Problem: 400, 413, 415, or 422 naming fields.

    is_optional: no body at all is an object without members.
    """
    value, is_suspect = read_json(request, exact=exact, is_optional=is_optional)
    if is_suspect:
        faults = unstorable(value)
        if faults:
            raise invalid(faults)
    return validate(value, shape)


def read_json(
    request: HttpRequest, *, exact: bool = False, is_optional: bool = False
) -> tuple[object, bool]:
    """The parsed body, and whether `unstorable` must look at it. Raises Problem.

    exact: keep whole numbers of more than 64 bits (helmdash.doors.bodies.jsontext).
    """
    text = _read_bytes(request)
    if not text and is_optional:
        return {}, False
    try:
        value = validation.read_json(text, exact=exact)
    except BadBody as fault:
        raise problem_of_fault(fault) from None
    return value, _NUL_ESCAPE in text or find_too_deep(text, value) is not None


def validate(value: object, shape: Shape[Value]) -> Value:
    """The value as `shape` wants it. Raises Problem: 422 naming fields."""
    try:
        return shape.check(value)
    except BadFields as error:
        raise invalid(error.faults) from None


def read_query(request: HttpRequest, shape: Shape[Value]) -> Value:
    """The query parameters as `shape` wants them. Raises Problem: 422 naming parameters."""
    given: dict[str, str] = {}
    faults: list[FieldFault] = []
    for name, values in request.GET.lists():
        if len(values) > 1:
            faults.append(FieldFault(name, "must be given once"))
        given[name] = str(values[0])
    if faults:
        raise invalid(faults)
    return validate(given, shape)


def require_conversation_id(value: str) -> None:
    """Raises Problem (422) for what no conversation can be called."""
    if len(value) > CONVERSATION_CHARS or not _CONVERSATION_ID.fullmatch(value):
        raise invalid_field("conversation_id", PATTERN_SENTENCES[CONVERSATION_PATTERN])


def refuse_query(request: HttpRequest) -> None:
    """For routes without query parameters: any is unknown. Raises Problem."""
    if request.GET:
        raise invalid(
            FieldFault(name, "is not known here; this address takes no parameters")
            for name in request.GET
        )


def _read_bytes(request: HttpRequest) -> bytes:
    """What the door has read (helmdash.doors.front); its limits are Django's, too."""
    try:
        body = request.body
    except RequestDataTooBig:
        limit = conf.env().max_body_bytes
        raise problem_of_fault(BodyTooLarge(limit, is_signed_in=True)) from None
    except (UnreadablePostError, RawPostDataException):
        raise Problem(code=Code.MALFORMED, detail="The body could not be read.") from None
    if body:
        _require_json(request)
    return body


def _require_json(request: HttpRequest) -> None:
    kind = (request.content_type or "").lower()
    # As CGI names it: for `headers` all of a request's are read and named anew.
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    is_json = kind in ("", "application/json") or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    if not is_json:
        raise Problem(
            code=Code.UNSUPPORTED_MEDIA_TYPE,
            detail=f"Send Content-Type: application/json instead of {kind[:80]}.",
        )
    if encoding != "identity":
        raise Problem(
            code=Code.UNSUPPORTED_MEDIA_TYPE,
            detail="Send the body without Content-Encoding; compressed bodies are not read.",
        )
