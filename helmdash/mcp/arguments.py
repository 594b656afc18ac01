"""Arguments of tools: checked to the letter, every fault named (the limits of the JSON API)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from helmdash.mcp.problems import Fault, Problem, invalid
from helmdash.shapes.fields import PATTERN_SENTENCES

Value = TypeVar("Value")

_MAX_FAULTS = 20


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
        if kind == "string_too_short":
            return "must not be blank"
        if kind == "string_pattern_mismatch":
            return PATTERN_SENTENCES.get(context["pattern"], "has a form that is not allowed")
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
