"""What a body must look like, checked to the letter, with one sentence for each fault everywhere.

`read_json` and `read_object` turn bytes into values, `Shape` turns values into what a face wants.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from helmdash.doors.bodies.fields import PATTERN_SENTENCES
from helmdash.doors.bodies.jsontext import MAX_DEPTH, BadJson, find_too_deep, load_json
from helmdash.doors.faults import BadBody
from helmdash.doors.problems import FieldFault

Value = TypeVar("Value")

_MAX_FAULTS = 50
# Of a path; a client finds its member by the first names of it.
_PATH_CHARS = 200
# Longer than any name of ours: what is like none of them, and takes long to compare.
_LIKE_CHARS = 64


class BadFields(Exception):
    """A value is not what a shape wants; `faults` name each wrong field."""

    def __init__(self, faults: tuple[FieldFault, ...]) -> None:
        super().__init__("; ".join(f"{fault.field}: {fault.message}" for fault in faults))
        self.faults = faults


class Shape(Generic[Value]):
    """What a body or a query must look like: a TypedDict, compiled once."""

    def __init__(self, kind: type[Value], *, also_known: Sequence[str] = ()) -> None:
        self.kind = kind
        self.adapter: TypeAdapter[Value] = TypeAdapter(kind)
        # For "did you mean"; `also_known` has the members of inner objects.
        self.known = (*kind.__annotations__, *also_known)

    def check(self, value: object, *, whole: str = "body") -> Value:
        """The value as the shape wants it. Raises BadFields; `whole` is what it is called."""
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise BadFields(faults_of(error, known=self.known, whole=whole)) from None


def read_json(text: bytes, *, exact: bool = False) -> object:
    """The value that a body says (doors.bodies.jsontext: strict, `exact`). Raises BadBody."""
    if not text.strip():
        raise BadBody("The body is empty; send a JSON object.")
    try:
        return load_json(text, exact=exact)
    except BadJson as error:
        raise BadBody(f"The body is {error}.") from None


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object that a body says, no deeper than it can be written again. Raises BadBody."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise BadBody("body: must be an object")
    deep = find_too_deep(text, value)
    if deep is not None:
        raise BadBody(f"{deep}: must not be nested more than {MAX_DEPTH} levels deep.")
    return value


def faults_of(
    error: ValidationError, *, known: Sequence[str], whole: str = "body"
) -> tuple[FieldFault, ...]:
    """pydantic's findings in our words, one for each field."""
    found: dict[str, FieldFault] = {}
    for item in error.errors(include_url=False)[:_MAX_FAULTS]:
        path = _path(item["loc"]) or whole
        found.setdefault(path, FieldFault(path, _sentence(item, known)))
    return tuple(found.values())


def unstorable(value: object, *, whole: str = "body") -> tuple[FieldFault, ...]:
    """Where a value holds U+0000 or is nested too deeply to be given back, the first ones."""
    return tuple(dict.fromkeys(islice(_walk(value, whole), _MAX_FAULTS)))


def _sentence(item: ErrorDetails, known: Sequence[str]) -> str:
    kind = item["type"]
    context: Mapping[str, Any] = item.get("ctx", {})
    if kind == "extra_forbidden":
        name = str(item["loc"][-1])
        close = difflib.get_close_matches(name, known, n=1) if len(name) <= _LIKE_CHARS else []
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


def _walk(value: object, whole: str) -> Iterator[FieldFault]:
    """In the order of the value. Only a fault's own path is put together: those of all members
    would take the names' length for each of them, gigabytes for a body of a few megabytes.
    """
    # What is still to be looked at on each level, and the names that lead to the innermost.
    levels: list[Iterator[tuple[object, object]]] = [iter((("", value),))]
    names: list[object] = []
    while levels:
        for name, member in levels[-1]:
            if isinstance(name, str) and "\x00" in name:
                where = _path(names[1:]) or whole
                yield FieldFault(where, "must not have a name with the character U+0000")
            if isinstance(member, str):
                if "\x00" in member:
                    where = _path([*names, name][1:]) or whole
                    yield FieldFault(where, "must not contain the character U+0000")
            elif isinstance(member, dict | list):
                if len(levels) > MAX_DEPTH:
                    where = _path([*names, name][1:])
                    yield FieldFault(where, f"must not be nested more than {MAX_DEPTH} levels deep")
                    return
                names.append(name)
                inside = member.items() if isinstance(member, dict) else enumerate(member)
                levels.append(iter(inside))
                break
        else:
            levels.pop()
            del names[-1:]


def _path(names: Sequence[object]) -> str:
    """The names of members with dots between, cut where it is long."""
    text = ".".join(str(name)[: _PATH_CHARS + 1] for name in names[: _PATH_CHARS + 1])
    text = text.replace("\x00", "\\u0000")
    return text if len(text) <= _PATH_CHARS else text[: _PATH_CHARS - 1] + "…"
