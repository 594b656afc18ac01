"""Budgets: how rows are edited and looked for.

The bodies are made of the fields that core.budgets.budgets declares, with their bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Required

from pydantic import BeforeValidator, Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.answers import Doc
from helmdash.api.fields import QUERY, Cursor, Limit, QueryText
from helmdash.api.parsing import Shape
from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.budgets.figures import FigureField, Multiline, Range
from helmdash.doors.bodies.fields import LARGEST, STRICT, Word64, Word255, whole


def _member(field: FigureField) -> Any:
    """What a body may say of the field."""
    kind = field.kind
    if issubclass(kind, Enum):
        # As JSON says it: in strict mode an enum would want its member. The empty word, as helmdeck
        # writes it in its table, is none.
        words = tuple(each.value for each in kind)
        found: Any = Literal[("", *words) if field.may_be_none else words]
    elif kind is str:
        found = Word255
    else:
        found = kind
    for mark in field.marks:
        match mark:
            case Multiline():
                found = Annotated[str, StringConstraints(max_length=mark.most)]
            case Range():
                found = Annotated[found, *_bounds(kind, mark)]
    if field.may_be_none:
        found = found | None
    for mark in field.marks:
        if isinstance(mark, Doc):
            found = Annotated[found, Field(description=mark.text)]
    return found


def _bounds(kind: type, bounds: Range) -> Iterator[object]:
    if kind is int:
        yield Field(ge=int(bounds.least), le=int(bounds.most or LARGEST))
        yield BeforeValidator(whole)
    else:
        yield Field(ge=bounds.least, le=bounds.most, allow_inf_nan=False)


def _body(name: str, meaning: str, members: dict[str, Any]) -> Any:
    made = TypedDict(name, members, total=False)  # type: ignore[misc]
    made.__doc__ = meaning
    made.__pydantic_config__ = STRICT  # type: ignore[attr-defined]
    return made


_MEMBERS = {each.name: _member(each) for each in STORED_FIELDS}
_REQUIRED = {each.name: Required[_MEMBERS[each.name]] for each in STORED_FIELDS if each.is_required}
_PROJECT = Annotated[
    Word64 | None,
    Field(
        description="The slug of the key's own project, also when left out. Null: for every "
        "project; takes an admin key of the default project."
    ),
]
BudgetPatch = _body(
    "BudgetPatch",
    "The members of a budget to change. Null resets those that have a default.",
    _MEMBERS,
)
BudgetIn = _body("BudgetIn", "A new budget.", {**_MEMBERS, **_REQUIRED, "project": _PROJECT})
PATCH: Shape[dict[str, object]] = Shape(BudgetPatch)
CREATE: Shape[dict[str, object]] = Shape(BudgetIn)


class ListQuery(TypedDict, total=False):
    """The place in the list."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    cursor: Annotated[Cursor, Field(description="`next` of the page before.")]
    limit: Annotated[Limit, Field(description="Default 50.")]


class ResolveQuery(TypedDict):
    """The model to look up."""

    __pydantic_config__ = QUERY  # type: ignore[misc]

    model: Annotated[QueryText, Field(description="A model id; empty gives the fallback.")]


LIST_QUERY = Shape(ListQuery)
RESOLVE_QUERY = Shape(ResolveQuery)
