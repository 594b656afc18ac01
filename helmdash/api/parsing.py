"""Reading requests: the body once with orjson, validated once, and every fault named.

Known members are checked to the letter and unknown ones refused, since a misspelt member that is
dropped in silence is data lost. Free objects (usage, metadata, messages, catalogs) are carried as
they are; only what PostgreSQL cannot store is refused in them: the character U+0000.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, RawPostDataException, UnreadablePostError
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from helmdash import conf
from helmdash.api.problems import Code, FieldFault, Problem, invalid, problem_of_fault
from helmdash.doors.faults import BodyTooLarge
from helmdash.shapes.fields import PATTERN_SENTENCES
from helmdash.shapes.jsontext import MAX_DEPTH, BadJson, find_too_deep, load_json

Value = TypeVar("Value")


class Shape(Generic[Value]):
    """What a body or a query must look like: a TypedDict, compiled once."""

    def __init__(self, kind: type[Value], *, also_known: Sequence[str] = ()) -> None:
        self.kind = kind
        self.adapter: TypeAdapter[Value] = TypeAdapter(kind)
        # For "did you mean"; `also_known` has the members of inner objects.
        self.known = (*kind.__annotations__, *also_known)


# How JSON spells U+0000: one fast search of the raw body decides whether to look closer.
_NUL_ESCAPE = b"\\u0000"
_MAX_FAULTS = 50


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

    exact: keep whole numbers of more than 64 bits (helmdash.shapes.jsontext).
    """
    text = _read_bytes(request)
    if not text and is_optional:
        return {}, False
    if not text.strip():
        raise Problem(code=Code.MALFORMED, detail="The body is empty; send a JSON object.")
    try:
        value = load_json(text, exact=exact)
    except BadJson as error:
        raise Problem(code=Code.MALFORMED, detail=f"The body is {error}.") from None
    return value, _NUL_ESCAPE in text or find_too_deep(text, value) is not None


def validate(value: object, shape: Shape[Value]) -> Value:
    """The value as `shape` wants it. Raises Problem: 422 naming fields."""
    try:
        return shape.adapter.validate_python(value)
    except ValidationError as error:
        raise invalid(faults_of(error, known=shape.known)) from None


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


def refuse_query(request: HttpRequest) -> None:
    """For routes without query parameters: any is unknown. Raises Problem."""
    if request.GET:
        raise invalid(
            FieldFault(name, "is not known here; this address takes no parameters")
            for name in request.GET
        )


def faults_of(error: ValidationError, *, known: Sequence[str]) -> tuple[FieldFault, ...]:
    """pydantic's findings in our words, one for each field."""
    found: dict[str, FieldFault] = {}
    for item in error.errors(include_url=False)[:_MAX_FAULTS]:
        path = ".".join(str(part) for part in item["loc"]) or "body"
        found.setdefault(path, FieldFault(path, _sentence(item, known)))
    return tuple(found.values())


def unstorable(value: object) -> tuple[FieldFault, ...]:
    """Where a value holds U+0000 or is nested too deeply to be given back."""
    return tuple(dict.fromkeys(_walk(value)))


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
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
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


def _sentence(item: ErrorDetails, known: Sequence[str]) -> str:
    kind = item["type"]
    context: Mapping[str, Any] = item.get("ctx", {})
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
        return "is not known here" + (f"; did you mean {close[0]}?" if close else "")
    if kind == "string_pattern_mismatch":
        return PATTERN_SENTENCES.get(context["pattern"], "has a form that is not allowed")
    template = _SENTENCES.get(kind)
    return template.format(**context) if template else item["msg"]


# pydantic's error types that our shapes can lead to.
_SENTENCES = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters long",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} item",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
}


def _walk(value: object) -> Iterator[FieldFault]:
    pending: list[tuple[object, str, int]] = [(value, "", 0)]
    while pending:
        here, path, depth = pending.pop()
        if isinstance(here, str):
            if "\x00" in here:
                yield FieldFault(path or "body", "must not contain the character U+0000")
            continue
        if not isinstance(here, dict | list):
            continue
        if depth >= MAX_DEPTH:
            yield FieldFault(path[:200], f"must not be nested more than {MAX_DEPTH} levels deep")
            return
        members = here.items() if isinstance(here, dict) else enumerate(here)
        for name, member in members:
            if isinstance(name, str) and "\x00" in name:
                yield FieldFault(path or "body", "must not have a name with the character U+0000")
            inside = f"{path}.{name}" if path else str(name)
            pending.append((member, inside.replace("\x00", "\\u0000"), depth + 1))
