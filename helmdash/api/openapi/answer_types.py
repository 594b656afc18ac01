"""The types of answers as pydantic is to see them: made from the dataclasses that declare them.

A dataclass becomes the TypedDict of its JSON (helmdash.answers), with the same names, meanings and
words, and pydantic makes the JSON Schema of that. Nothing is validated by it: what leaves is ours.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.answers import (
    BLANK_IS_NULL,
    OPTIONAL,
    WHEN_SAID,
    AnswerMember,
    Doc,
    JsonSchema,
    Most,
    Stored,
    Words,
    members_of,
    name_of,
    split,
)


def answer_type(hint: Any) -> Any:
    """What a value declared as `hint` is in JSON."""
    kind, marks = split(hint)
    return _marked(_json_type(kind), marks)


def _json_type(kind: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and origin is None and is_dataclass(kind):
        return _typed_dict(kind)
    if origin in (Union, UnionType):
        return Union[tuple(answer_type(part) for part in parts)]  # noqa: UP007  # made of parts
    if origin is tuple:
        return list[answer_type(parts[0])]  # type: ignore[misc]
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, answer_type(parts[1])]  # type: ignore[misc]
    return Any if kind is object else kind


@cache
def _typed_dict(kind: type) -> Any:
    found: dict[str, Any] = {one.name: _member_type(one) for one in members_of(kind)}
    made = TypedDict(name_of(kind), found)  # type: ignore[misc]
    # What follows the first paragraph is for those who read the code.
    made.__doc__ = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return made


def _member_type(one: AnswerMember) -> Any:
    kind = one.kind
    if one.has(BLANK_IS_NULL):
        kind = Union[kind, None]  # noqa: UP007  # also where `kind` is no plain type
    found = _marked(_json_type(kind), one.marks)
    if one.has(OPTIONAL) or one.has(WHEN_SAID):
        return NotRequired[_marked(answer_type(_said(kind)), one.marks)]
    return found


def _said(kind: Any) -> Any:
    """The type without None, which is left out."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(parts)]  # noqa: UP007  # made of parts
    return kind


def _marked(kind: Any, marks: tuple[object, ...]) -> Any:
    for mark in marks:
        match mark:
            case Stored():
                kind = answer_type(mark.kind)
            case Words():
                kind = Annotated[kind, WithJsonSchema({"type": "string", "enum": list(mark.words)})]
            case JsonSchema():
                kind = Annotated[kind, WithJsonSchema(dict(mark.schema))]
            case Most():
                kind = Annotated[kind, Field(max_length=mark.count)]
            case Doc():
                kind = Annotated[kind, Field(description=mark.text)]
    return kind
