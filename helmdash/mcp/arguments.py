"""Arguments of tools: checked to the letter, every fault named (the limits of the JSON API)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from helmdash.core.capture import CONVERSATION_CHARS, CONVERSATION_PATTERN
from helmdash.mcp.problems import Fault, Problem, invalid

Value = TypeVar("Value")

# "1" is no number, true is no count; unknown members are refused, since a misspelt one that is
# dropped in silence is data lost.
STRICT = ConfigDict(extra="forbid", strict=True)
# Objects that may hold more than we read.
OPEN = ConfigDict(extra="ignore", strict=True)

# No control characters: they hide in logs and pages.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
_ID = r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$"
_NAME = r"^[A-Za-z0-9._-]{1,120}$"
_PATTERNS = {
    _LINE: "must be one line without control characters",
    _ID: "must be printable, without white space at its ends",
    _NAME: "must be 1 to 120 of the characters A-Z a-z 0-9 . _ -",
    r"\S": "must not be blank",
    CONVERSATION_PATTERN: (
        "must be 1 to 255 of the characters A-Z a-z 0-9 . _ : @ + = -, and not . or .. alone"
    ),
}
_MAX_FAULTS = 20
# Beyond this, every double rounds; no count of tokens or bytes comes near.
_LARGEST = 2**53


def _word(most: int) -> StringConstraints:
    return StringConstraints(max_length=most, strip_whitespace=True, pattern=_LINE)


def _whole(value: object) -> object:
    """JSON has one kind of number: 3.0 is a whole one, as JSON Schema says."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value


Word32 = Annotated[str, _word(32)]
Word64 = Annotated[str, _word(64)]
Word128 = Annotated[str, _word(128)]
Word255 = Annotated[str, _word(255)]
ModelId = Annotated[str, _word(255), StringConstraints(min_length=1)]
Intent = Annotated[str, StringConstraints(pattern=r"\S")]
ClientId = Annotated[str, StringConstraints(max_length=128, pattern=_ID)]
ConversationId = Annotated[
    str, StringConstraints(max_length=CONVERSATION_CHARS, pattern=CONVERSATION_PATTERN)
]
CatalogName = Annotated[str, StringConstraints(pattern=_NAME)]
Count = Annotated[int, Field(ge=0, le=_LARGEST), BeforeValidator(_whole)]
# PositiveIntegerField's range on every database.
SmallPositive = Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(_whole)]
HttpStatus = Annotated[int, Field(ge=100, le=599), BeforeValidator(_whole)]
# Clients measure in fractions; we keep whole milliseconds. The limit is 30 years.
Milliseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
FreeObject = dict[str, Any]


class Shape(Generic[Value]):
    """What the arguments of a tool must look like: a TypedDict, compiled once."""

    def __init__(self, kind: type[Value]) -> None:
        self._adapter: TypeAdapter[Value] = TypeAdapter(kind)
        self._known = tuple(kind.__annotations__)

    def read(self, arguments: Mapping[str, Any]) -> Value:
        """The arguments as the tool takes them. Raises Problem that names each wrong one."""
        faults = _unstorable(arguments)
        if faults:
            raise invalid(faults)
        try:
            return self._adapter.validate_python(dict(arguments))
        except ValidationError as error:
            raise self._invalid(error) from None

    def _invalid(self, error: ValidationError) -> Problem:
        found: dict[str, Fault] = {}
        for item in error.errors(include_url=False)[:_MAX_FAULTS]:
            path = ".".join(str(part) for part in item["loc"]) or "arguments"
            found.setdefault(path, Fault(path, self._sentence(item)))
        return invalid(tuple(found.values()))

    def _sentence(self, item: ErrorDetails) -> str:
        kind, context = item["type"], item.get("ctx", {})
        if kind == "extra_forbidden":
            close = difflib.get_close_matches(str(item["loc"][-1]), self._known, n=1)
            return "is not known here" + (f"; did you mean {close[0]}?" if close else "")
        if kind == "missing":
            return "is required"
        if kind == "string_pattern_mismatch":
            return _PATTERNS.get(context["pattern"], "has a form that is not allowed")
        # pydantic's own sentences begin with what came in: "Input should be a valid string".
        return item["msg"].replace("Input should", "should", 1)


def _unstorable(arguments: Mapping[str, Any]) -> Sequence[Fault]:
    """Where the arguments hold U+0000, which PostgreSQL cannot store."""
    sentence = "must not contain the character U+0000"
    return tuple(Fault(path, sentence) for path in dict.fromkeys(_walk(arguments)))


def _walk(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The first member of each branch that holds U+0000, by its dotted path."""
    waiting: list[tuple[str, object]] = [(str(name), value) for name, value in arguments.items()]
    while waiting:
        path, value = waiting.pop()
        if "\x00" in path:
            yield path.replace("\x00", "\N{REPLACEMENT CHARACTER}")
        elif isinstance(value, str):
            if "\x00" in value:
                yield path
        elif isinstance(value, Mapping):
            waiting += [(f"{path}.{name}", each) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}.{number}", each) for number, each in enumerate(value)]
