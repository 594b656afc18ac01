"""How a value leaves as JSON: declared once, where its fields are.

A frozen dataclass declares an answer. Each field is a member of the object, under its own name and
as it is, unless a mark in its `Annotated` says otherwise; a property marked with `member` is one,
too. `to_json` writes by these declarations, and the JSON Schema of the API is made from them
(helmdash.api.openapi.answer_types), so that a member is added, renamed or left out in one place.

Pure, and below everything: the values of core declare themselves by it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind", bound=type)
Getter = TypeVar("Getter", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Doc:
    """What the member means, for those who read the API's schema."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonName:
    """The member's name, where it is not the field's."""

    name: str


@dataclass(frozen=True, slots=True)
class Words:
    """The words a plain text is one of. Said, not checked."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Most:
    """A list has at most so many items."""

    count: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The value is JSON already, as `kind` left when it was stored."""

    kind: Any


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """What JSON Schema says of the member, where its type cannot."""

    schema: Mapping[str, Any]


class MemberRule(Enum):
    """How a field differs from its member."""

    HIDDEN = "no member at all"
    INLINE = "the members of its value stand in its place"
    BLANK_IS_NULL = "an empty text is null"
    OPTIONAL = "left out where it is None"
    WHEN_SAID = "left out where it is empty, false or None"


HIDDEN: Final = MemberRule.HIDDEN
INLINE: Final = MemberRule.INLINE
BLANK_IS_NULL: Final = MemberRule.BLANK_IS_NULL
OPTIONAL: Final = MemberRule.OPTIONAL
WHEN_SAID: Final = MemberRule.WHEN_SAID


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMember:
    """One member of an answer. `attribute` leads to it, through dots where it is inlined."""

    name: str
    attribute: str
    kind: Any
    marks: tuple[object, ...] = ()

    def has(self, rule: MemberRule) -> bool:
        """Whether the rule holds for it."""
        return rule in self.marks


def answer(name: str) -> Callable[[Kind], Kind]:
    """Name the schema of a dataclass, where it is not the class's name."""

    def named(kind: Kind) -> Kind:
        _NAMES[kind] = name
        return kind

    return named


def member(getter: Getter) -> Getter:
    """Mark what a property gets as a member. Stands below `@property`."""
    _GETTERS.add(getter)
    return getter


def name_of(kind: type) -> str:
    """The name of a dataclass's schema."""
    return _NAMES.get(kind, kind.__name__)


@cache
def members_of(kind: Any) -> tuple[AnswerMember, ...]:
    """The members of a dataclass: its fields in their order, then its marked properties.

    Of two with one name the later counts, in the place of the first.
    """
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, AnswerMember] = {}
    for each in fields(kind):
        for one in _members(each.name, hints[each.name]):
            found[one.name] = one
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            getter = value.fget if isinstance(value, property) else None
            if getter in _GETTERS:
                told = get_type_hints(getter, include_extras=True)["return"]
                for one in _members(name, told):
                    found[one.name] = one
    return tuple(found.values())


def _members(attribute: str, hint: Any) -> tuple[AnswerMember, ...]:
    kind, marks = split(hint)
    if HIDDEN in marks:
        return ()
    if INLINE in marks:
        return tuple(
            AnswerMember(
                name=inner.name,
                attribute=f"{attribute}.{inner.attribute}",
                kind=inner.kind,
                marks=inner.marks,
            )
            for inner in members_of(kind)
        )
    name = next((mark.name for mark in marks if isinstance(mark, JsonName)), attribute)
    return (AnswerMember(name=name, attribute=attribute, kind=kind, marks=marks),)


def split(hint: Any) -> tuple[Any, tuple[object, ...]]:
    """A type without its marks, and these."""
    if get_origin(hint) is Annotated:
        kind, *marks = get_args(hint)
        return kind, tuple(marks)
    return hint, ()


def members(value: object) -> dict[str, object]:
    """The members of a dataclass's value by their names; of values inside, too, where their type
    says that they are dataclasses. Times, enums and what else is inside stay as they are."""
    kind: Any = type(value)
    return _reader(kind)(value)


def to_json(value: Any) -> Any:
    """The value as JSON has it: objects, lists, texts, numbers, true, false and null.

    Times are RFC 3339 in UTC.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, datetime):
        return rfc3339(value)
    return to_json(members(value))


def rfc3339(at: datetime) -> str:
    """RFC 3339 in UTC, as every answer has its times."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


@cache
def _reader(kind: Any) -> Callable[[Any], dict[str, object]]:
    """A function that reads all members.

    Written out as text, as `dataclasses` does it: a list of a thousand calls takes 1.8 times as
    long when a loop over the members reads them.
    """
    if not hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"not JSON: {kind.__name__}")
    found = members_of(kind)
    lines = [
        f"{one.name!r}: {_read(one, f'value.{one.attribute}', number)},"
        for number, one in enumerate(found)
        if not (one.has(OPTIONAL) or one.has(WHEN_SAID))
    ]
    lines = ["def read(value):", " found = {", *lines, " }"]
    for number, one in enumerate(found):
        if one.has(OPTIONAL) or one.has(WHEN_SAID):
            test = "inner is not None" if one.has(OPTIONAL) else "inner"
            lines.append(f" inner = value.{one.attribute}")
            lines.append(f" if {test}: found[{one.name!r}] = {_read(one, 'inner', number)}")
    names: dict[str, Any] = {
        f"read_{number}": _reader(inner)
        for number, one in enumerate(found)
        if (inner := _dataclass_in(one.kind)) is not None
    }
    exec("\n".join([*lines, " return found"]), names)  # noqa: S102  # names of our own classes
    reader: Callable[[Any], dict[str, object]] = names["read"]
    return reader


def _read(one: AnswerMember, source: str, number: int) -> str:
    """An expression for the member's value."""
    if one.has(BLANK_IS_NULL):
        return f"{source} or None"
    if _dataclass_in(one.kind) is None:
        return source
    read = f"read_{number}"
    if get_origin(one.kind) is tuple:
        return f"[{read}(item) for item in {source}]"
    return f"None if {source} is None else {read}({source})"


def _dataclass_in(kind: Any) -> type | None:
    """The dataclass that a member is, may be, or is a list of; None for anything else."""
    inner, _ = split(kind)
    parts = [part for part in get_args(inner) if part not in (type(None), ...)]
    if get_origin(inner) in (tuple, Union, UnionType) and len(parts) == 1:
        inner, _ = split(parts[0])
    return inner if isinstance(inner, type) and is_dataclass(inner) else None


_NAMES: dict[type, str] = {}
_GETTERS: set[object] = set()
